#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The own and the total weight of each function of a real program, in everything that shows a recording.

usage: totals.py INCSTACK PROGRAM

Records the heap and the time of the program. For each kind of weight, folded stacks, pprof, speedscope and Firefox
files, the page, the report as JSON, and what `go tool pprof` prints must have the same sums, to the last byte; sums.py
has the text, which rounds and shortens. Lines, modules and threads must be in the pprof files. Without go its part is left out.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from page_file import Page
from profile_files import READERS
from sums import run, sums_of

GO_ROW = re.compile(r" *([\d.]+)(?:B|ns)? +[\d.]+% +[\d.]+% +([\d.]+)(?:B|ns)? +[\d.]+% (.*)")
GO_UNITS = {"bytes": "B", "nanoseconds": "ns", "count": "count"}


def file_sums(path, kind=slice(0, 1)):
    """The sums of a kind, or of several that are one: in Firefox files of a CPU profile these are the threads."""
    profile = READERS[path.name.partition(".")[2]](path)
    contexts = {}
    for (_, stack), weights in profile.samples.items():
        names = tuple(frame[0] for frame in stack)
        contexts[names] = contexts.get(names, 0) + sum(weights[kind])
    return sums_of(contexts.items())


def json_sums(report, kind):
    """What the report says as JSON."""
    k = [one["name"] for one in report["kinds"]].index(kind)
    return {row["function"]: (row["own"][k], row["total"][k]) for row in report["functions"]}


def find_go():
    """Returns the program go, if its pprof is ready: some versions build it first, which may take minutes."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    try:
        return go if go and subprocess.run([go, "tool", "pprof", "-h"], env=go_environment(), capture_output=True,
                                           timeout=100).returncode in (0, 2) else None
    except subprocess.TimeoutExpired:
        return None


def go_environment():
    return {**os.environ, "PPROF_BINARY_PATH": "/nonexistent", "PPROF_TOOLS": "/nonexistent", "GOTOOLCHAIN": "local"}


def go_sums(go, path, kind, unit):
    result = subprocess.run([go, "tool", "pprof", "-top", "-trim=false", "-nodecount=1000000",
                             f"-sample_index={kind}", f"-unit={GO_UNITS[unit]}", "-symbolize=none", path],
                            capture_output=True, text=True, env=go_environment(), check=True)
    rows = {}
    for line in result.stdout.splitlines():
        found = GO_ROW.fullmatch(line)
        if found:
            name = re.sub(r" \((partial-)?inline\)$", "", found[3].strip())
            assert name not in rows, f"{name} has two rows"
            rows[name] = (int(float(found[1])), int(float(found[2])))
    return rows


def without_zeros(sums):
    """What weighs nothing of a kind may have a row or none."""
    return {name: pair for name, pair in sums.items() if pair != (0, 0)}


def compare(right, shown):
    for what, sums in shown.items():
        right, sums = without_zeros(right), without_zeros(sums)
        wrong = {k: (right.get(k), sums.get(k)) for k in right.keys() | sums.keys()
                 if right.get(k) != sums.get(k)}
        assert not wrong, f"{what}: {len(wrong)} of {len(right)} functions differ: {wrong!r:.300}"


def check_kind(tool, trace, files, kind, number, go):
    """Folded stacks, which have no more than names and weights, are what the others are compared with."""
    name, unit = kind
    this = slice(number, number + 1)
    folded = trace.with_suffix(".folded")
    run(tool, "convert", "-k", name, trace, folded)
    right = file_sums(folded)
    assert right, f"{trace.name}: nothing of {name}"
    compare(right, {"pprof": file_sums(files["pb.gz"], this),
                    "speedscope": file_sums(files["speedscope.json"], this)})
    has_threads = "kind" in json.loads(files["firefox.json"].read_text())["threads"][0]
    if not has_threads or number == 0:
        sums = file_sums(files["firefox.json"], slice(None) if has_threads else this)
        compare(right, {"Firefox": sums})
    compare(right, {"page": Page(files["html"]).sums(number), "JSON": json_sums(files["json"], name)})
    if go:
        compare(right, {"go tool pprof": go_sums(go, files["pb.gz"], name, unit)})


def check_places(path, is_cpu):
    profile = READERS["pb.gz"](path)
    default = "CPU time" if is_cpu else "live at peak"
    assert profile.attributes["period"][-1] == default, profile.attributes["period"]
    frames = {frame for _, stack in profile.samples for frame in stack}
    assert any(f[0].startswith("burn" if is_cpu else "box<long>::fill") and f[1].endswith("totals_target.cpp") and
               f[2] > 0 for f in frames), "no line"
    assert any(m[3].endswith("/totals_target") for m in profile.attributes["mappings"]), "no module"
    if is_cpu:
        tids = {label[2] for labels, _ in profile.samples for label in labels if label[0] == "tid"}
        assert len(tids) >= 4, f"threads: {tids}"
    else:
        assert any(f[0].startswith("wrapped") and f[3] for f in frames), "no inlined function"


def check(tool, program, what, folder, go):
    trace = folder / f"{what}.trace"
    result = subprocess.run([tool, what, "-o", trace, program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    files = {}
    for suffix in ("pb.gz", "speedscope.json", "firefox.json", "html"):
        files[suffix] = folder / f"{what}.{suffix}"
        run(tool, "convert", trace, files[suffix])
    files["json"] = json.loads(run(tool, "report", "--json", "-n", "1000000", trace))
    kinds = READERS["pb.gz"](files["pb.gz"]).kinds
    for number, kind in enumerate(kinds):
        check_kind(tool, trace, files, kind, number, go)
    check_places(files["pb.gz"], what == "cpu")


def main():
    tool, program = sys.argv[1:]
    go = find_go()
    print("with" if go else "without", "go tool pprof")
    with tempfile.TemporaryDirectory() as name:
        for what in ("heap", "cpu"):
            try:
                check(tool, program, what, Path(name), go)
            except AssertionError as error:
                print(f"{what}: {error}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
