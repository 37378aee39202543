#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The own and the total weights of each function, in everything that shows a profile.

usage: sums.py INCSTACK [PROFILES [SEED]]

Random profiles. What the text report prints must be equal, to
the last byte, to the sums over the contexts in folded stacks, pprof, speedscope and Firefox files and in the
page of the flame graph, which are made from the same profile.
"""
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from pprof_message import PprofWriter, field, varint
from page_file import Page
from profile_files import READERS

ROW = re.compile(r" *(\d+) +[\d.]+% +(\d+) +[\d.]+%  (.*)")


def random_contexts(rng, size):
    """Contexts, as lists of names, with their weights. A part of them is a caller's, as in programs."""
    is_large = size > 10000
    names = [f"f{i}" for i in range(size // 10 if is_large else rng.choice([2, 10, 100]))]
    contexts, stack = {}, [rng.choice(names)]
    deepest = 40 if is_large else rng.choice([3, 10, 40])
    big = 1000000 if is_large else rng.choice([1, 10, 1000000])
    for _ in range(size):
        keep = rng.randint(0 if rng.random() < 0.05 else len(stack) // 2, len(stack))
        stack = stack[:keep] + [rng.choice(names) for _ in range(rng.randint(1, 4))]
        stack = stack[:deepest]
        contexts[tuple(stack)] = rng.choice([1, rng.randint(1, big)])
    return contexts


def write_folded(contexts, path):
    path.write_text("".join(f"{';'.join(c)} {w}\n" for c, w in contexts.items()))


def write_pprof(rng, contexts, path):
    """One function has several lines, and is in several files, so a context is there several times."""
    out = PprofWriter()
    out.body += field(1, field(1, out.string("samples")) + field(2, out.string("count")))
    places = {}

    def location(name):
        key = (name, rng.choice(["a.c", "b.c", ""]), rng.randint(0, 3))
        if key not in places:
            places[key] = out.location([(out.function(name, key[1], name, 0), key[2], 0)], 0, 0)
        return places[key]

    samples = []
    for context, weight in contexts.items():
        first = rng.randint(0, weight)
        for part in (first, weight - first):
            ids = [location(name) for name in reversed(context)]
            samples.append(field(2, field(1, b"".join(map(varint, ids))) + field(2, varint(part))))
    out.body += b"".join(samples)
    path.write_bytes(out.bytes())


def sums_of(contexts):
    own, total = Counter(), Counter()
    for context, weight in contexts:
        own[context[-1]] += weight
        for name in set(context):
            total[name] += weight
    return {name: (own[name], total[name]) for name in total}


def run(tool, *arguments):
    result = subprocess.run([tool, *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def text_sums(tool, path):
    rows = {}
    for line in run(tool, "report", "-n", "1000000", path).splitlines():
        found = ROW.fullmatch(line)
        if found:
            assert found[3] not in rows, f"{found[3]} has two rows"
            rows[found[3]] = (int(found[1]), int(found[2]))
    return rows


def file_sums(path):
    profile = READERS[path.name.partition(".")[2]](path)
    return sums_of(([frame[0] for frame in stack], weights[0])
                   for (_, stack), weights in profile.samples.items())


def check(tool, rng, size, folder):
    contexts = random_contexts(rng, size)
    suffix = rng.choice(["folded", "pb.gz"])
    source = folder / f"source.{suffix}"
    if suffix == "folded":
        write_folded(contexts, source)
    else:
        write_pprof(rng, contexts, source)
    right = sums_of(contexts.items())
    shown = {"text": text_sums(tool, source)}
    for suffix in ("folded", "pb.gz", "speedscope.json", "firefox.json", "html"):
        target = folder / f"target.{suffix}"
        run(tool, "convert", source, target)
        if suffix == "html":
            shown[suffix] = Page(target).sums()
        else:
            shown[suffix] = file_sums(target)
    shown["text of pprof"] = text_sums(tool, folder / "target.pb.gz")
    for what, sums in shown.items():
        wrong = {k: (right.get(k), sums.get(k)) for k in right.keys() | sums.keys()
                 if right.get(k) != sums.get(k)}
        assert not wrong, f"{what}: {len(wrong)} of {len(right)} functions differ: {wrong!r:.300}"


def main():
    tool = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    for i in range(count):
        rng = random.Random(f"{seed} {i}")
        with tempfile.TemporaryDirectory() as name:
            try:
                check(tool, rng, 60000 if i % 50 == 0 else rng.choice([3, 50, 400]),
                      Path(name))
            except AssertionError as error:
                print(f"profile {i} of seed {seed}: {error}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
