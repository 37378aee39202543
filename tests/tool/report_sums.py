#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The weights of each function in the text and the JSON report of a heap trace, and in folded stacks.

usage: report_sums.py INCSTACK TRACE

The own weights, and those with callees, are computed here from the folded stacks of each kind. operator new only
passes requests on: its caller owns what operator new has requested.
"""
import json
import os
import re
import subprocess
import sys
from collections import Counter

KINDS = ["allocated", "allocations", "temporary", "live at peak", "live at exit"]
COLUMNS = [(0, k) for k in range(5)] + [(1, k) for k in range(5)]  # of the table: own, then with callees
ROW = re.compile(r"((?: +[0-9.]+[KMGTPE]?){10})  (\S.*)")


def run(tool, *arguments):
    environment = dict(os.environ, COLUMNS="9000")
    result = subprocess.run([tool, *arguments], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


def folded_sums(tool, trace, kind):
    own, total = Counter(), Counter()
    run(tool, "convert", "-k", kind, trace, "sums.folded")
    for line in open("sums.folded", encoding="utf-8"):
        stack, _, weight = line.rstrip("\n").rpartition(" ")
        frames = stack.split(";")
        for name in set(frames):
            total[name] += int(weight)
        while len(frames) > 1 and frames[-1].startswith("operator new"):
            frames.pop()
        own[frames[-1]] += int(weight)
    return own, total


def short(value, is_bytes):
    """An amount as the table prints it."""
    if value < (1000 if is_bytes else 10 ** 7):
        return str(value)
    scaled = value
    for unit in "KMGTPE":
        scaled /= 1024 if is_bytes else 1000
        if scaled < 999.95:
            return f"{scaled:.1f}{unit}"
    raise AssertionError(value)


def main():
    tool, trace = sys.argv[1:]
    sums = [folded_sums(tool, trace, kind) for kind in KINDS]
    names = {name for _, total in sums for name in total}
    right = {name: tuple(tuple(sums[k][which][name] for k in range(5)) for which in (0, 1)) for name in names}
    report = json.loads(run(tool, "report", "--json", trace))
    assert [kind["name"] for kind in report["kinds"]] == KINDS
    shown = {f["function"].replace(";", ":"): (tuple(f["own"]), tuple(f["total"])) for f in report["functions"]}
    shown = {name: weights for name, weights in shown.items() if any(weights[1])}
    wrong = [name for name in right.keys() | shown.keys() if right.get(name) != shown.get(name)]
    assert not wrong, [(name, right.get(name), shown.get(name)) for name in wrong[:3]]
    # A line of a library gives its weight to the program's own line, so only the sums are those of the functions.
    for k in range(5):
        lines = sum(line["own"][k] for line in report["lines"])
        assert lines == sum(weights[0][k] for weights in shown.values()), f"lines of {KINDS[k]}"

    rows = {}
    for line in run(tool, "report", "--full", "-n", "100000", "-o", "sums", trace).splitlines():
        found = ROW.fullmatch(line)
        if found:
            assert found[2] not in rows, f"{found[2]} has two rows"
            rows[found[2]] = found[1].split()
    assert len(rows) == len(report["functions"]), (len(rows), len(report["functions"]))
    for name, weights in shown.items():
        expected = [short(weights[which][k], k in (0, 3, 4)) for which, k in COLUMNS]
        assert rows[name] == expected, f"{name}: {rows[name]}, not {expected}"
    assert len(rows) > 5


if __name__ == "__main__":
    main()
