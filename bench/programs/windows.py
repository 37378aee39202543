#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# What a trace at every allocation adds to whole programs, for each technique that
# bench/windows knows. The programs repeat themselves from run to run, so a window is
# compared with the windows of all runs at the same place; what remains is the
# technique and noise.
import argparse
import csv
import os
import random
import statistics
import sys

from targets import run, targets

TECHNIQUES = ["unw_backtrace", "full", "validate", "patch"]
WANTED = {"python3": 3.2, "jq": 2.7, "sqlite3": 1.4, "cc1": 2.0}
TRIM = 0.1
RESAMPLED = 300


def trimmed_mean(values):
    values = sorted(values)
    cut = int(len(values) * TRIM)
    return statistics.fmean(values[cut:len(values) - cut])


def read_windows(path):
    """[(technique, ns per allocation)] by place, and the counters of each technique."""
    windows, counters = [], {}
    with open(path, encoding="utf-8") as lines:
        rows = [line.rstrip("\n") for line in lines]
    for row in csv.DictReader(r for r in rows if not r.startswith("#")):
        windows.append((row["technique"], float(row["ns"]) / int(row["traces"])))
    for row in rows:
        if row.startswith("#"):
            words = row[1:].split(" ")
            for word in words:
                if "=" in word:
                    key, value = word.split("=")
                    counters[(words[0] if len(words) > 2 else "", key)] = int(value)
    return windows, counters


def residuals(runs):
    """technique -> [ns over what is usual at the place of the window]"""
    left = {"count": []}
    for place in range(max(len(r) for r in runs)):
        here = [r[place] for r in runs if place < len(r)]
        if len(here) * 2 < len(runs):
            continue
        usual = statistics.median(ns for _, ns in here)
        for technique, ns in here:
            left.setdefault(technique, []).append(ns - usual)
    return left


def added(left):
    base = trimmed_mean(left["count"])
    return {t: trimmed_mean(left[t]) - base for t in TECHNIQUES}


def ratios_resampled(left, pick):
    ratios = []
    for _ in range(RESAMPLED):
        again = {t: pick.choices(values, k=len(values)) for t, values in left.items()}
        now = added(again)
        if now["patch"] > 0:
            ratios.append(now["unw_backtrace"] / now["patch"])
    ratios.sort()
    return ratios[int(len(ratios) * 0.025)], ratios[int(len(ratios) * 0.975)]


def measure(target, arguments):
    runs, last = [], {}
    path = os.path.join(arguments.output, f"windows.{target.name}")
    environment = {
        "LD_PRELOAD": os.path.join(arguments.build, "bench/windows/libincstack_preload.so"),
        "INCSTACK_HEAP": "windows", "INCSTACK_WINDOWS_FILE": path,
        "INCSTACK_WINDOWS_LENGTH": str(arguments.length)}
    for seed in range(arguments.runs):
        run(target, {**environment, "INCSTACK_WINDOWS_SEED": str(seed + 1)})
        windows, last = read_windows(path)
        runs.append(windows)
    os.remove(path)
    return runs, last


def summary(name, runs, counters):
    left = residuals(runs)
    mean = added(left)
    low, high = ratios_resampled(left, random.Random(1))
    row = {"program": name, "windows": sum(len(r) for r in runs)}
    row.update({f"{t}_ns": round(mean[t], 1) for t in TECHNIQUES})
    row["ratio"] = round(mean["unw_backtrace"] / mean["patch"], 2)
    row["ratio_low"], row["ratio_high"] = round(low, 2), round(high, 2)
    row["full_ratio"] = round(mean["full"] / mean["patch"], 2)
    samples = counters[("full", "samples")] or 1
    row["depth"] = round(counters[("full", "walked")] / samples, 1)
    samples = counters[("patch", "samples")] or 1
    row["walked"] = round(counters[("patch", "walked")] / samples, 2)
    row["returns"] = round(counters[("patch", "returns")] / samples, 2)
    row["faults"] = counters[("", "errors")] + sum(
        counters[(t, "truncated")] for t in ("full", "validate", "patch"))
    row["wanted"] = WANTED.get(name, "")
    return row


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.path.join(root, "build/release"))
    parser.add_argument("--output", default=None, help="where inputs and windows.csv go")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--length", type=int, default=512, help="allocations of a window")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the inputs")
    parser.add_argument("programs", nargs="*", help="python3 jq sqlite3 perl cc1; all")
    arguments = parser.parse_args()
    arguments.output = arguments.output or os.path.join(arguments.build, "bench")

    rows = []
    print("added ns per trace over the hooks alone; ratio: unw_backtrace / patch [95 % of resamples]")
    for target in targets(os.path.join(arguments.output, "inputs"), root, arguments.scale):
        if arguments.programs and target.name not in arguments.programs:
            continue
        row = summary(target.name, *measure(target, arguments))
        rows.append(row)
        print("{program:8} unw {unw_backtrace_ns:7} full {full_ns:7} validate {validate_ns:7} patch "
              "{patch_ns:7}  ratio {ratio:5} [{ratio_low}..{ratio_high}]  full/patch {full_ratio:5}  "
              "depth {depth} walked {walked} returns {returns} faults {faults} wanted >= {wanted}"
              .format(**row), flush=True)
    if not rows:
        sys.exit("windows: no program to measure")
    with open(os.path.join(arguments.output, "windows.csv"), "w", encoding="utf-8") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return 1 if any(row["faults"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
