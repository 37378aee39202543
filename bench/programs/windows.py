#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# What a trace at every allocation adds to whole programs, for each technique that
# bench/windows knows. The programs repeat themselves from run to run, so a window is
# compared with the windows of all runs at the same place; what remains is the
# technique and noise.
import csv
import os
import random
import statistics
import sys

from targets import RESAMPLED, chosen, interval, options, run, trimmed_mean, write_csv

TECHNIQUES = ["unw_backtrace", "full", "validate", "patch"]
WANTED = {"python3": 3.2, "jq": 2.7, "sqlite3": 1.4, "cc1": 2.0}
TRIM = 0.1
WINDOWS = 10000  # in all runs, at least


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
    base = trimmed_mean(left["count"], TRIM)
    return {t: trimmed_mean(left[t], TRIM) - base for t in TECHNIQUES}


def ratios_resampled(left, pick):
    ratios = []
    for _ in range(RESAMPLED):
        again = {t: pick.choices(values, k=len(values)) for t, values in left.items()}
        now = added(again)
        if now["patch"] > 0:
            ratios.append(now["unw_backtrace"] / now["patch"])
    return interval(ratios)


def measure(target, arguments):
    """Short programs run more often, up to ten times: a few windows are not enough."""
    runs, last = [], {}
    path = os.path.join(arguments.output, f"windows.{target.name}")
    environment = {
        "LD_PRELOAD": os.path.join(arguments.build, "bench/windows/libincstack_preload.so"),
        "INCSTACK_HEAP": "windows", "INCSTACK_WINDOWS_FILE": path,
        "INCSTACK_WINDOWS_LENGTH": str(arguments.length)}
    for seed in range(10 * arguments.runs):
        if seed >= arguments.runs and sum(map(len, runs)) >= WINDOWS:
            break
        run(target, {**environment, "INCSTACK_WINDOWS_SEED": str(seed + 1)})
        windows, last = read_windows(path)
        runs.append(windows)
    os.remove(path)
    return runs, last


def per_trace(counters, technique, what):
    return round(counters[(technique, what)] / max(1, counters[(technique, "traces")]), 2)


def summary(name, runs, counters):
    left = residuals(runs)
    mean = added(left)
    low, high = ratios_resampled(left, random.Random(1))
    row = {"program": name, "windows": sum(len(r) for r in runs)}
    row.update({f"{t}_ns": round(mean[t], 1) for t in TECHNIQUES})
    row["ratio"] = round(mean["unw_backtrace"] / mean["patch"], 2)
    row["ratio_low"], row["ratio_high"] = round(low, 2), round(high, 2)
    row["full_ratio"] = round(mean["full"] / mean["patch"], 2)
    row["depth"] = per_trace(counters, "full", "objects")
    row["objects"] = per_trace(counters, "patch", "objects")
    row["returns"] = per_trace(counters, "patch", "returns")
    row["faults"] = counters[("", "errors")] + sum(
        counters[(t, "truncated")] for t in ("full", "validate", "patch"))
    row["wanted"] = WANTED.get(name, "")
    return row


def main():
    parser = options("The added time of a trace in whole programs.", 10, 1.0)
    parser.add_argument("--length", type=int, default=512, help="allocations of a window")
    arguments = parser.parse_args()
    if arguments.runs < 2:
        parser.error("--runs: what is usual at a place takes two runs at least")
    rows = []
    print("added ns per trace over the hooks alone; ratio: unw_backtrace / patch [95 % of resamples]")
    for target in chosen(arguments):
        row = summary(target.name, *measure(target, arguments))
        rows.append(row)
        print("{program:8} unw {unw_backtrace_ns:7} full {full_ns:7} validate {validate_ns:7} patch "
              "{patch_ns:7}  ratio {ratio:5} [{ratio_low}..{ratio_high}]  full/patch {full_ratio:5}  "
              "depth {depth} objects {objects} returns {returns} faults {faults} wanted >= {wanted}"
              .format(**row), flush=True)
    write_csv(os.path.join(arguments.output, "windows.csv"), rows)
    return 1 if any(row["faults"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
