#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# heaptrack against `incstack heap`: what each adds to the processor time of the
# profiled process. Each writes its data as it always does: heaptrack to a pipe, at
# whose other end its interpreter runs, ours to a file. What runs in other processes
# is left out for both. Each round has all of them in random order, those that the result
# depends on most, bare and ours, three times; every run has its heap at a random place
# (shift.c).
import glob
import math
import os
import random
import statistics
import subprocess
import sys

from targets import (RESAMPLED, chosen, interval, options, run, run_moved, trimmed_mean,
                     write_csv)

WANTED = 5.0
PLACES = ["/usr/lib/heaptrack", "/usr/lib/*/heaptrack"]
PRELOAD = "libheaptrack_preload.so"
INTERPRET = "libexec/heaptrack_interpret"


def find_heaptrack(name):
    found = [path for place in PLACES for path in glob.glob(os.path.join(place, name))]
    if not found:
        sys.exit("heaptrack: not installed; scripts/bench installs it")
    return found[0]


def remove(path):
    if os.path.exists(path):
        os.remove(path)


def run_bare(target, arguments, path):
    del path
    return run_moved(target, arguments, {})


def run_incstack(target, arguments, path):
    library = os.path.join(arguments.build, "libincstack_preload.so")
    configuration = f"interval=1;mode=patch;crosscheck=0;follow=0;file={path}"
    return run_moved(target, arguments, {"LD_PRELOAD": library, "INCSTACK_HEAP": configuration})


def run_heaptrack(target, arguments, path):
    """Runs heaptrack as its script does."""
    os.mkfifo(path)
    with open(os.devnull, "wb") as nowhere:
        command = f"{find_heaptrack(INTERPRET)} < {path} | gzip -c > {path}.gz"
        with subprocess.Popen(["sh", "-c", command], stdout=nowhere, stderr=nowhere) as reader:
            seconds = run_moved(target, arguments, {"LD_PRELOAD": find_heaptrack(PRELOAD),
                                                    "DUMP_HEAPTRACK_OUTPUT": path})
            reader.wait()
    remove(path + ".gz")
    return seconds


RUNS = [run_bare, run_incstack] * 3 + [run_heaptrack]


def allocations(target, path):
    """heaptrack's raw data has a line for each."""
    run(target, {"LD_PRELOAD": find_heaptrack(PRELOAD), "DUMP_HEAPTRACK_OUTPUT": path})
    with open(path, "rb") as lines:
        count = sum(line.startswith(b"+") for line in lines)
    remove(path)
    return count


def measure(target, arguments):
    """What each run took in each round, and the allocations of a run."""
    path = os.path.join(arguments.output, f"heaptrack.{target.name}")
    remove(path)
    count = allocations(target, path)
    rounds = []
    for _ in range(arguments.runs):
        seconds = {who: [] for who in RUNS}
        for who in random.sample(RUNS, len(RUNS)):
            seconds[who].append(who(target, arguments, path))
            remove(path)
        rounds.append({who: statistics.fmean(values) for who, values in seconds.items()})
    return rounds, count


def added(rounds, who):
    """The added time relative to the bare time of the same round; mean of the middle half."""
    return trimmed_mean((seconds[who] / seconds[run_bare] - 1 for seconds in rounds), 0.25)


def ratio(rounds):
    ours = added(rounds, run_incstack)
    return added(rounds, run_heaptrack) / ours if ours > 0 else math.inf


def summary(name, rounds, count):
    bare = statistics.median(seconds[run_bare] for seconds in rounds)
    theirs, ours = (bare * added(rounds, who) for who in (run_heaptrack, run_incstack))
    low, high = interval(ratio(random.choices(rounds, k=len(rounds))) for _ in range(RESAMPLED))
    return {"program": name, "allocations": count, "bare_s": round(bare, 3),
            "heaptrack_added_s": round(theirs, 3), "incstack_added_s": round(ours, 3),
            "heaptrack_ns": round(theirs / count * 1e9), "incstack_ns": round(ours / count * 1e9),
            "ratio": round(ratio(rounds), 2), "ratio_low": round(low, 2),
            "ratio_high": round(high, 2), "wanted": WANTED}


def main():
    arguments = options("heaptrack and incstack heap.", 15, 1.0).parse_args()
    rows = []
    print("processor time added to the process, s and ns per allocation; ratio: "
          "heaptrack / incstack [95 % of resamples]")
    for target in chosen(arguments):
        rows.append(summary(target.name, *measure(target, arguments)))
        print("{program:8} {allocations:8} allocations, bare {bare_s:6} heaptrack + "
              "{heaptrack_added_s:6} ({heaptrack_ns} ns) incstack + {incstack_added_s:6} "
              "({incstack_ns} ns)  ratio {ratio:5} [{ratio_low}..{ratio_high}] wanted "
              ">= {wanted}".format(**rows[-1]), flush=True)
    write_csv(os.path.join(arguments.output, "heaptrack.csv"), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
