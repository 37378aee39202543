# SPDX-License-Identifier: MIT
"""The table is well-formed, its scripts parse, and every kind of fault gets a verdict."""
import collections
import dataclasses
import subprocess
import sys

import runs
import verdict
from table import HERE, Program, read_table


def table_errors():
    errors = []
    for program in read_table().values():
        for name, script in (("run", program.run), ("prepare", program.prepare)):
            parsed = subprocess.run(["bash", "-n", "-c", f". {HERE}/prelude.sh\n{script}"],
                                    capture_output=True, text=True, check=False)
            if parsed.returncode != 0:
                errors.append(f"{program.name}: {name}: {parsed.stderr.strip()}")
    return errors


GOOD = runs.Run(0, b"out", b"", 1.0, dict(dict.fromkeys(runs.COUNTS, 0), traces=10),
                ["patch"], [], 1, 1)
FOLDED = collections.Counter({"main;f": 10})
GOOD = dataclasses.replace(GOOD, folded=FOLDED)
CHECKED = dataclasses.replace(GOOD, counts=dict(GOOD.counts, crosschecked=10))


def counts(run, **changed):
    return dataclasses.replace(run, counts=dict(run.counts, **changed))


# A change of the recorded or the crosschecked run, and a word that the verdict must have.
FAULTS = (
    ("recorded", dataclasses.replace(GOOD, status=139), "exit status"),
    ("recorded", dataclasses.replace(GOOD, status=None), "hangs"),
    ("recorded", dataclasses.replace(GOOD, stdout=b"other"), "stdout"),
    ("recorded", dataclasses.replace(GOOD, stderr=b"noise"), "stderr"),
    ("recorded", dataclasses.replace(GOOD, reported=0), "reports are missing"),
    ("recorded", dataclasses.replace(GOOD, modes=["validate"]), "mode validate"),
    ("recorded", counts(GOOD, traces=0), "no trace"),
    ("recorded", counts(GOOD, traces=1), "expected 4"),
    ("recorded", counts(GOOD, lost=1), "lost=1"),
    ("recorded", counts(GOOD, truncated=1), "truncated=1"),
    ("recorded", counts(GOOD, stale=1), "stale=1"),
    ("checked", counts(CHECKED, mismatches=1), "mismatches=1"),
    ("checked", counts(CHECKED, crosschecked=9), "not checked"),
    ("checked", dataclasses.replace(CHECKED, folded=collections.Counter({"main;f": 3})), "folded"),
    ("checked", dataclasses.replace(CHECKED, folded=collections.Counter()), "folded"),
    ("bare", dataclasses.replace(GOOD, status=1), "the entry is wrong"),
)


def verdict_errors():
    program = Program("example", "run true", least=2, deterministic=True)
    good = {"bare": GOOD, "recorded": GOOD, "checked": CHECKED}
    errors = [f"good runs: {error}" for error in verdict.judge(program, 2, **good)]
    for which, run, word in FAULTS:
        found = verdict.judge(program, 2, **dict(good, **{which: run}))
        if not any(word in error for error in found):
            errors.append(f"{which} with a fault: no verdict with '{word}': {found}")
    empty = dataclasses.replace(GOOD, folded=collections.Counter())
    if not verdict.folded_difference(empty, empty):
        errors.append("two runs without folded stacks pass for equal ones")
    known = Program("example", "run true", truncated="known", stale="known", lost="known")
    lossy = counts(GOOD, truncated=1, stale=1, lost=1)
    found = verdict.judge(known, 2, GOOD, lossy, CHECKED)
    errors += [f"known reasons: {error}" for error in found]
    partly = counts(CHECKED, crosschecked=9)
    if not any("not checked" in error for error in verdict.judge(known, 2, GOOD, lossy, partly)):
        errors.append("a reason for losses passes for one why traces are not checked")
    known = dataclasses.replace(known, unchecked="known")
    found = verdict.judge(known, 2, GOOD, lossy, partly)
    return errors + [f"known reasons, some not checked: {error}" for error in found]


if __name__ == "__main__":
    all_errors = table_errors() + verdict_errors()
    print("\n".join(all_errors))
    sys.exit(bool(all_errors))
