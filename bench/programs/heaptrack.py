#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# heaptrack against `incstack heap`: what each adds to the processor time of the
# profiled process. Each writes its data as it always does: heaptrack to a pipe, at
# whose other end its interpreter runs, ours to a file. What runs in other processes
# is left out for both. Runs are interleaved in random order.
import glob
import os
import random
import statistics
import subprocess
import sys

from targets import chosen, options, run, write_csv

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
    del arguments, path
    return run(target, {})


def run_incstack(target, arguments, path):
    library = os.path.join(arguments.build, "libincstack_preload.so")
    configuration = f"interval=1;mode=patch;crosscheck=0;follow=0;file={path}"
    return run(target, {"LD_PRELOAD": library, "INCSTACK_HEAP": configuration})


def run_heaptrack(target, arguments, path):
    """As the script `heaptrack` does it."""
    os.mkfifo(path)
    with open(os.devnull, "wb") as nowhere:
        command = f"{find_heaptrack(INTERPRET)} < {path} | gzip -c > {path}.gz"
        with subprocess.Popen(["sh", "-c", command], stdout=nowhere, stderr=nowhere) as reader:
            seconds = run(target, {"LD_PRELOAD": find_heaptrack(PRELOAD),
                                   "DUMP_HEAPTRACK_OUTPUT": path})
            reader.wait()
    remove(path + ".gz")
    return seconds


TRACERS = {"bare": run_bare, "heaptrack": run_heaptrack, "incstack": run_incstack}


def allocations(target, path):
    """heaptrack's raw data has a line for each."""
    run(target, {"LD_PRELOAD": find_heaptrack(PRELOAD), "DUMP_HEAPTRACK_OUTPUT": path})
    with open(path, "rb") as lines:
        count = sum(line.startswith(b"+") for line in lines)
    remove(path)
    return count


def measure(target, arguments):
    path = os.path.join(arguments.output, f"heaptrack.{target.name}")
    remove(path)
    count = allocations(target, path)
    seconds = {name: [] for name in TRACERS}
    order = list(TRACERS)
    pick = random.Random(1)
    for _ in range(arguments.runs):
        pick.shuffle(order)
        for name in order:
            seconds[name].append(TRACERS[name](target, arguments, path))
            remove(path)
    return seconds, count


def summary(name, seconds, count):
    added = {who: [profiled - bare for profiled, bare in zip(seconds[who], seconds["bare"])]
             for who in ("heaptrack", "incstack")}
    middle = {who: statistics.median(values) for who, values in added.items()}
    ratios = sorted(theirs / ours for theirs, ours in zip(added["heaptrack"], added["incstack"])
                    if ours > 0)
    return {"program": name, "allocations": count,
            "bare_s": round(statistics.median(seconds["bare"]), 3),
            "heaptrack_added_s": round(middle["heaptrack"], 3),
            "incstack_added_s": round(middle["incstack"], 3),
            "heaptrack_ns": round(middle["heaptrack"] / count * 1e9),
            "incstack_ns": round(middle["incstack"] / count * 1e9),
            "ratio": round(middle["heaptrack"] / middle["incstack"], 2),
            "ratio_low": round(ratios[0], 2), "ratio_high": round(ratios[-1], 2),
            "wanted": WANTED}


def main():
    arguments = options("heaptrack and incstack heap.", 7, 2.0).parse_args()
    rows = []
    print("processor time added to the process, s and ns per allocation; ratio: "
          "heaptrack / incstack [least..most of the runs]")
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
