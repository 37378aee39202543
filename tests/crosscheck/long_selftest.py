# SPDX-License-Identifier: MIT
"""The table of scripts/crosscheck --long is well-formed, reports are read, every kind of fault
is noticed, and a lane that was interrupted goes on with the program that ran least."""
import argparse
import subprocess
import sys

import long

REPORT = """5 traces of 1 threads, 2 contexts, 1.0 frames deep on average
5 traces were compared with full walks, 2 of them by libunwind; 0 differ
incstack: traces=5 crosschecked=5 mismatches=0 lost=0 truncated=1 returns=0 stale=0 mode=patch
"""
# The line before the last one, of a CPU profile.
TICKS = "incstack: expected=9 taken=5 queued=0 failed=1 merged=3 reached_ns=4000000\n"
GOOD = {"traces": 5, "crosschecked": 5, "mismatches": 0, "lost": 0, "truncated": 1, "stale": 0,
        "unwound": 2}
# What is changed in a good run, and a word of what is said of it.
FAULTS = ((1, {}, "exit status 1"), (0, {"mismatches": 1}, "mismatches=1"),
          (0, {"lost": 2}, "lost=2"), (0, {"crosschecked": 4}, "4 of 5"),
          (0, {"traces": 0, "crosschecked": 0}, "0 of 0"))
GOOD_TICKS = {**GOOD, "ticks": {"expected": 9, "taken": 5, "queued": 0, "failed": 1, "merged": 3}}
TICK_FAULTS = (({"expected": 10}, {}, "10 ticks"), ({"merged": 4}, {}, "9 ticks"),
               ({}, {"traces": 4, "crosschecked": 4}, "gave 4"),
               ({}, {"crosschecked": 2}, "2 of 5"), ({}, {"crosschecked": 6}, "6 of 5"),
               ({}, {"mismatches": 1}, "mismatches=1"))


def script_errors():
    for name, program in long.read_programs(long.CPU).items():
        parsed = subprocess.run(["bash", "-n", "-c", long.RECORD + program["run"]],
                                capture_output=True, text=True, check=False)
        if parsed.returncode != 0 or "record " not in program["run"]:
            yield f"{name}: {parsed.stderr.strip()}"


def verdict_errors():
    if long.read_report(REPORT) != GOOD:
        yield f"the report is read as {long.read_report(REPORT)}"
    if long.judge(0, GOOD) != "" or "no report" not in long.judge(139, long.read_report("")):
        yield "a good run is bad, or one without a report is good"
    if long.read_report(TICKS + REPORT) != GOOD_TICKS or long.judge(0, GOOD_TICKS) != "":
        yield "a good CPU profile is bad"
    for ticks, changed, words in TICK_FAULTS:
        said = long.judge(0, {**GOOD_TICKS, **changed, "ticks": {**GOOD_TICKS["ticks"], **ticks}})
        if words not in said:
            yield f"ticks {ticks}, {changed}: '{said}' says nothing of {words}"
    few = {**GOOD_TICKS, "crosschecked": 1}
    if "compared" not in long.judge(0, few) or long.judge(0, few, 0.1) != "":
        yield "the part that must be compared is not heeded"
    for status, changed, words in FAULTS:
        said = long.judge(status, {**GOOD, **changed})
        if words not in said:
            yield f"status {status}, {changed}: '{said}' says nothing of {words}"


def goal_errors():
    ran = [{"name": "a", "seconds": 3, "counts": GOOD_TICKS}] * 2
    options = argparse.Namespace(lane=long.CPU, seconds=1, traces=10)
    if long.done(ran, options) != (0.018, 1, "seconds") or long.is_done(ran, options):
        yield f"18 ticks are {long.done(ran, options)}"
    options.lane = long.HEAP
    if not long.is_done(ran, options):
        yield "10 traces are not enough"
    if "xz" not in long.read_programs(long.CPU) or "xz" in long.read_programs(long.HEAP):
        yield "xz, which allocates little, is not in CPU profiles alone"


def walker_errors():
    small = {"small_signal_stack": True}
    if "=own" not in long.profile(small, long.CPU) or "=own" in long.profile({}, long.CPU):
        yield "libunwind is to walk on small signal stacks, or the own walk elsewhere"


def order_errors():
    ran = [{"name": "a", "seconds": 3}, {"name": "b", "seconds": 1}, {"name": "b", "seconds": 1}]
    if long.least_run({"a": 0, "b": 0}, ran) != ("b", 2):
        yield "not the program that ran least, or not with a new seed"
    if long.least_run({"a": 0, "c": 0}, ran) != ("c", 0):
        yield "not the program that never ran"


ERRORS = [*script_errors(), *verdict_errors(), *goal_errors(), *walker_errors(),
          *order_errors()]
if ERRORS:
    sys.exit("\n".join(ERRORS))
