#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The metrics of incstack compare against their definitions in exact fractions.

usage: metrics.py INCSTACK [PROFILES [SEED]]

Random profiles with small and with very large weights are written as folded stacks.
Overlap, hot-edge coverage and correlation of two, and the quartiles over several runs,
must agree with what the tool prints, to its three decimals.
"""
import random
import subprocess
import sys
import tempfile
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path

getcontext().prec = 60
HALF = Fraction(1, 2000) + Fraction(1, 10 ** 9)


def random_profile(rng, limit):
    """Stacks and their weights; contexts are shared between profiles."""
    stacks = {}
    for _ in range(rng.choice([1, 2, 5, 20, 60])):
        stack = tuple(rng.choice("abcd") for _ in range(rng.randint(1, 5)))
        stacks[stack] = stacks.get(stack, 0) + rng.randint(1, limit)
    return stacks


def edges(stacks):
    """Weights by context: self as ('n', ...), with callees as ('e', ...)."""
    nodes, totals = {}, {}
    for stack, weight in stacks.items():
        nodes[("n",) + stack] = nodes.get(("n",) + stack, 0) + weight
        for i in range(1, len(stack) + 1):
            totals[("e",) + stack[:i]] = totals.get(("e",) + stack[:i], 0) + weight
    return nodes, totals, {**nodes, **totals}


def overlap(a, b):
    sum_a, sum_b = sum(a.values()), sum(b.values())
    return sum((min(Fraction(a[k]) / sum_a, Fraction(b[k]) / sum_b) for k in a if k in b),
               Fraction(0))


def hot(a, threshold):
    return {k for k, v in a.items() if v >= threshold * max(a.values())}


def cover(a, b, threshold):
    """Hot-edge coverage of a over b."""
    return Fraction(len(hot(a, threshold) & hot(b, threshold)), len(hot(b, threshold)))


def correlation(a, b):
    keys = set(a) | set(b)
    x, y = [Fraction(a.get(k, 0)) for k in keys], [Fraction(b.get(k, 0)) for k in keys]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    xx = sum((v - mean_x) ** 2 for v in x)
    yy = sum((v - mean_y) ** 2 for v in y)
    xy = sum((v - mean_x) * (w - mean_y) for v, w in zip(x, y))
    if xx == 0 and yy == 0:
        return Fraction(1)
    if xx == 0 or yy == 0:
        return None
    square = xy * xy / (xx * yy)
    root = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
    return Fraction(root) * (1 if xy >= 0 else -1)


def quantile(values, part):
    values = sorted(values)
    place = part * (len(values) - 1)
    below = int(place)
    above = values[min(below + 1, len(values) - 1)]
    return values[below] + (place - below) * (above - values[below])


def average(profiles):
    result = {}
    for stacks in profiles:
        total = sum(stacks.values())
        for stack, weight in stacks.items():
            result[stack] = result.get(stack, 0) + Fraction(weight, total)
    return result


def write(path, stacks):
    path.write_text("".join(f"{';'.join(s)} {w}\n" for s, w in stacks.items()))


def rows(tool, threshold, paths):
    """What the tool prints, by the title of the row."""
    out = subprocess.run([tool, "compare", *(["--similarity"] if len(paths) == 2 else []), "--hot", str(threshold),
                          *paths],
                         check=True, capture_output=True, text=True).stdout
    return {line[:28].strip(): line[28:].split() for line in out.splitlines()}


def same(printed, exact):
    if exact is None:
        return printed == "n/a"
    return printed != "n/a" and abs(Fraction(printed) - exact) <= HALF


def check_row(found, title, exact, failures):
    if not all(same(p, e) for p, e in zip(found[title], exact)):
        failures.append(f"{title}: printed {found[title]}, exact "
                        f"{[e if e is None else float(e) for e in exact]}")


def check_two(tool, a, b, threshold, paths, failures):
    found = rows(tool, threshold, paths[:2])
    t = Fraction(str(threshold))
    sides = list(zip(edges(a), edges(b)))
    check_row(found, "degree of overlap", [overlap(x, y) for x, y in sides], failures)
    check_row(found, "hot-edge coverage, A over B", [cover(x, y, t) for x, y in sides], failures)
    check_row(found, "hot-edge coverage, B over A", [cover(y, x, t) for x, y in sides], failures)
    check_row(found, "correlation", [correlation(x, y) for x, y in sides], failures)


def check_runs(tool, runs, threshold, paths, failures):
    found = rows(tool, threshold, paths[:len(runs)])
    t = Fraction(str(threshold))
    mean = edges(average(runs))[2]
    both = [edges(r)[2] for r in runs]
    for title, values in (("degree of overlap", [overlap(r, mean) for r in both]),
                          ("hot-edge coverage", [cover(r, mean, t) for r in both]),
                          ("correlation", [correlation(r, mean) for r in both])):
        values = [v for v in values if v is not None]
        exact = [quantile(values, Fraction(k, 4)) if values else None for k in (1, 2, 3)]
        check_row(found, title, exact, failures)


def main():
    tool = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 5)
    failures = []
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory) / f"{i}.folded" for i in range(6)]
        for i in range(count):
            limit = rng.choice([1, 3, 50, 10 ** 6, 2 ** 56])
            runs = [random_profile(rng, limit) for _ in range(rng.randint(3, 6))]
            if limit == 2 ** 56 and rng.random() < 0.5:
                # Alike, but for differences that a double cannot hold.
                runs = [{s: 2 ** 56 + rng.randint(0, 7) for s in runs[0]} for _ in runs]
            for path, stacks in zip(paths, runs):
                write(path, stacks)
            threshold = rng.choice([0.1, 0.07, 0.5, 1, 0])
            before = len(failures)
            check_two(tool, runs[0], runs[1], threshold, paths, failures)
            check_runs(tool, runs, threshold, paths, failures)
            failures[before:] = [f"profile {i}: {f}" for f in failures[before:]]
    print("\n".join(failures[:10]))
    print(f"profiles: {count}, wrong rows: {len(failures)}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
