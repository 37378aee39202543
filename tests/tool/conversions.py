#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random profiles through every pair of formats, read back by readers of our own.

usage: conversions.py INCSTACK [PROFILES [SEED]]

A random pprof file, with all that pprof can say, or a speedscope or Firefox file as other
programs write them, is converted to each format, and each of those to each again: 30
conversions a profile. What comes out must be what went in, except for what incstack's line
"not kept" names, and from pprof to pprof that is only what no profile here can hold.
"""
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from profile_files import FORMATS, READERS, random_source

LOSSES = {"labels of samples": "labels", "mappings and addresses": "mappings",
          "system names, start lines, columns or filters": "functions",
          "file names": "file", "line numbers": "line", "what is inlined": "inlined",
          "other kinds of weight": "kinds", "the kind's name and unit": "unit",
          "metadata": "meta", "comments": "comments", "period and default kind": "period",
          "';' and newlines in names": "names", "fractions of weights": "fractions",
          "which thread a sample is of": "threads"}

KEPT = {"labels", "mappings", "inlined", "file", "kinds", "unit", "meta", "comments", "period"}


def convert(tool, source, target):
    """Returns what the tool says is lost."""
    run = subprocess.run([tool, "convert", source, target], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    lost, lines = set(), run.stderr.splitlines()
    assert len(lines) <= 1, run.stderr
    for line in lines:
        rest = line.removeprefix("incstack: not kept: ")
        assert rest != line, line
        rest = rest.replace("system names, start lines, columns or filters", "functions")
        for part in rest.split(", "):
            lost.add(LOSSES[part] if part != "functions" else part)
    return lost


def check(tool, source, target, before):
    lost = convert(tool, source, target)
    if source.suffixes == target.suffixes and target.suffixes[-2:] in ([".pb", ".gz"], [".otlp", ".pb"]):
        assert not lost & KEPT, f"not kept {sorted(lost & KEPT)}"
    after = READERS[target.name.partition(".")[2]](target)
    want, got = before.without(lost), after.without(lost)
    for what, a, b in zip(("kinds", "samples", "attributes"), want, got):
        if a != b:
            differs = a if not isinstance(a, dict) else \
                {k: (a.get(k), b.get(k)) for k in set(a) | set(b) if a.get(k) != b.get(k)}
            raise AssertionError(f"{what} differ, not kept {sorted(lost)}: {differs!r:.600}")
    return after


def main():
    tool = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    conversions, failures = 0, []
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for i in range(seed, seed + count):
            source, said = random_source(random.Random(i), folder)
            for first in FORMATS:
                conversions += 1
                try:
                    middle = check(tool, source, folder / f"a.{first}", said)
                except AssertionError as error:
                    failures.append(f"seed {i}: {source.name} -> {first}: {error}")
                    continue
                for second in FORMATS:
                    conversions += 1
                    try:
                        check(tool, folder / f"a.{first}", folder / f"b.{second}", middle)
                    except AssertionError as error:
                        failures.append(f"seed {i}: {first} -> {second}: {error}")
    print("\n".join(failures[:5]))
    print(f"conversions: {conversions}, wrong: {len(failures)}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
