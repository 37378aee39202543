#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# What CPU profilers add to the processor time of the profiled process, 1,000 and 10,000 times a
# second: `incstack cpu`, the CPU profiler of gperftools, and `perf record -g`. Each round has all
# of them in random order; every run has its heap at a random place (shift.c). What runs in other
# processes, as perf's own, is left out.
import glob
import os
import random
import re
import statistics
import struct
import subprocess
import sys

from targets import RESAMPLED, chosen, interval, moved, options, run_moved, trimmed_mean, write_csv

GPERFTOOLS = "/usr/lib/x86_64-linux-gnu/libprofiler.so.0"
# Runs a command and writes its processor time to a file: perf's own does not count.
CHILD = """
import os, sys
pid = os.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "w") as out:
    out.write(str(usage.ru_utime + usage.ru_stime))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def remove(path):
    for found in glob.glob(glob.escape(path) + "*"):
        os.remove(found)


# Each returns processor time and samples of a run, at a frequency.

def run_bare(target, arguments, path, hertz):
    del path, hertz
    return run_moved(target, arguments, {}), 0


def run_incstack(target, arguments, path, hertz):
    library = os.path.join(arguments.build, "libincstack_preload.so")
    seconds = run_moved(target, arguments, {
        "LD_PRELOAD": library, "INCSTACK_HEAP": f"kind=1;interval={1000000000 // hertz};mode=patch;"
                                                f"crosscheck=no;follow=0;file={path}"})
    report = subprocess.run([os.path.join(arguments.build, "incstack"), "report", path, "-o",
                             f"{path}.report"], check=True, capture_output=True, text=True)
    return seconds, int(re.search(r"^(\d+) traces of", report.stdout, re.M).group(1))


def gperftools_samples(path):
    """The file is of words: a header, and for each stack its count, its depth and its addresses."""
    with open(path, "rb") as data:
        content = data.read()
    words = struct.unpack_from(f"<{len(content) // 8}Q", content)
    at = 2 + words[1]
    total = 0
    while words[at] != 0: # behind the last stack
        total += words[at]
        at += 2 + words[at + 1]
    return total


def run_gperftools(target, arguments, path, hertz):
    seconds = run_moved(target, arguments, {"LD_PRELOAD": GPERFTOOLS, "CPUPROFILE": path,
                                            "CPUPROFILE_PER_THREAD_TIMERS": "1",
                                            "CPUPROFILE_FREQUENCY": str(hertz)})
    return seconds, gperftools_samples(path)


def run_perf(target, arguments, path, hertz):
    variables = [f"{name}={value}" for name, value in moved(arguments, target.environment).items()]
    with open(f"{path}.py", "w", encoding="utf-8") as out:
        out.write(CHILD)
    with open(target.stdin or os.devnull, "rb") as stdin:
        process = subprocess.run(
            ["perf", "record", "-g", "-e", "cpu-clock", "-F", str(hertz), "-o", path,
             sys.executable, f"{path}.py", f"{path}.seconds", "env", *variables, *target.command],
            check=True, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with open(f"{path}.seconds", encoding="utf-8") as seconds:
        return float(seconds.read()), int(re.search(r"\((\d+) samples\)", process.stderr).group(1))


RUNS = {"bare": (run_bare, 0),
        "incstack_1k": (run_incstack, 1000), "incstack_10k": (run_incstack, 10000),
        "gperftools_1k": (run_gperftools, 1000), "gperftools_10k": (run_gperftools, 10000),
        "perf_1k": (run_perf, 1000), "perf_10k": (run_perf, 10000)}


def measure(target, arguments):
    """Seconds and samples of each run, in rounds."""
    path = os.path.join(arguments.output, f"cpu.{target.name}")
    rounds = []
    for _ in range(arguments.runs):
        seconds = {}
        for name in random.sample(list(RUNS), len(RUNS)):
            remove(path)
            function, hertz = RUNS[name]
            seconds[name] = function(target, arguments, path, hertz)
        rounds.append(seconds)
    remove(path)
    return rounds


def added(rounds, name):
    """The added time in percent of the bare time of the same round; mean of the middle half."""
    return 100 * trimmed_mean((taken[name][0] / taken["bare"][0] - 1 for taken in rounds), 0.25)


def rate(rounds, name):
    """Samples in a second of the bare program."""
    return statistics.median(taken[name][1] / taken["bare"][0] for taken in rounds)


def summary(target, rounds):
    bare = statistics.median(taken["bare"][0] for taken in rounds)
    for name in list(RUNS)[1:]:
        low, high = interval(added(random.choices(rounds, k=len(rounds)), name)
                             for _ in range(RESAMPLED))
        yield {"program": target.name, "bare_s": round(bare, 3), "profiler": name,
               "added_percent": round(added(rounds, name), 1), "added_low": round(low, 1),
               "added_high": round(high, 1), "samples_a_second": round(rate(rounds, name))}


def main():
    arguments = options("incstack cpu, gperftools and perf record.", 11, 10.0).parse_args()
    rows = []
    print("processor time added to the process, % of bare [95 % of resamples]; samples a second")
    for target in chosen(arguments):
        for row in summary(target, measure(target, arguments)):
            rows.append(row)
            print("{program:8} bare {bare_s:6} s {profiler:14} + {added_percent:5} % [{added_low}.."
                  "{added_high}] {samples_a_second} samples/s".format(**row), flush=True)
    write_csv(os.path.join(arguments.output, "cpu.csv"), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
