#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# heaptrack against `incstack heap`: what each adds to the processor time of the
# profiled process. Both preloaded objects write their raw data to a file; what
# interprets it afterwards is left out for both. Runs are interleaved in random order.
import argparse
import csv
import glob
import os
import random
import statistics
import sys

from targets import run, targets

WANTED = 5.0
LIBRARIES = ["/usr/lib/heaptrack/libheaptrack_preload.so",
             "/usr/lib/*/heaptrack/libheaptrack_preload.so"]


def find_heaptrack():
    found = [path for pattern in LIBRARIES for path in glob.glob(pattern)]
    if not found:
        sys.exit("heaptrack: not installed; scripts/setup bench installs it")
    return found[0]


def environments(build, path):
    """Of one run each."""
    return {
        "bare": {},
        "heaptrack": {"LD_PRELOAD": find_heaptrack(), "DUMP_HEAPTRACK_OUTPUT": path},
        "incstack": {"LD_PRELOAD": os.path.join(build, "libincstack_preload.so"),
                     "INCSTACK_HEAP": f"file={path};interval=1;mode=patch;crosscheck=0;follow=0"},
    }


def remove(path):
    if os.path.exists(path):
        os.remove(path)


def allocations(path):
    """heaptrack's raw file has a line for each."""
    with open(path, "rb") as lines:
        return sum(line.startswith(b"+") for line in lines)


def measure(target, arguments):
    path = os.path.join(arguments.output, f"heaptrack.{target.name}")
    seconds = {"bare": [], "heaptrack": [], "incstack": []}
    sizes, count = {}, 0
    pick = random.Random(1)
    for _ in range(arguments.runs):
        order = list(environments(arguments.build, path).items())
        pick.shuffle(order)
        for name, environment in order:
            remove(path)
            seconds[name].append(run(target, environment))
            if name != "bare":
                sizes[name] = os.path.getsize(path)
            if name == "heaptrack" and not count:
                count = allocations(path)
    remove(path)
    return seconds, sizes, count


def summary(name, seconds, sizes, count):
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
            "heaptrack_bytes": sizes["heaptrack"], "incstack_bytes": sizes["incstack"],
            "wanted": WANTED}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.path.join(root, "build/release"))
    parser.add_argument("--output", default=None, help="where inputs and heaptrack.csv go")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--scale", type=float, default=2.0, help="size of the inputs")
    parser.add_argument("programs", nargs="*", help="python3 jq sqlite3 perl cc1; all")
    arguments = parser.parse_args()
    arguments.output = arguments.output or os.path.join(arguments.build, "bench")

    rows = []
    print("processor time added to the process, s and ns per allocation; ratio: "
          "heaptrack / incstack [least..most of the runs]")
    for target in targets(os.path.join(arguments.output, "inputs"), root, arguments.scale):
        if arguments.programs and target.name not in arguments.programs:
            continue
        rows.append(summary(target.name, *measure(target, arguments)))
        print("{program:8} {allocations:8} allocations, bare {bare_s:6} heaptrack + "
              "{heaptrack_added_s:6} ({heaptrack_ns} ns) incstack + {incstack_added_s:6} "
              "({incstack_ns} ns)  ratio {ratio:5} [{ratio_low}..{ratio_high}]  bytes "
              "{heaptrack_bytes} {incstack_bytes} wanted >= {wanted}".format(**rows[-1]), flush=True)
    if not rows:
        sys.exit("heaptrack: no program to measure")
    with open(os.path.join(arguments.output, "heaptrack.csv"), "w", encoding="utf-8") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
