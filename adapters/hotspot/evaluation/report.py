# SPDX-License-Identifier: MIT
"""Tables of an experiment, as Markdown."""
import concurrent.futures
import itertools
import math
import os
import platform
import re
import statistics
import subprocess
import tempfile

from results import (MODES, TECHNIQUES, added, geometric_mean, good, intervals_of, noise, overheads,
                     profile_name, quartiles, workloads_of)


def cell(values, scale=1.0):
    if not values:
        return ""
    low, middle, high = quartiles(values)
    return f"{middle * scale:.1f} ({low * scale:.1f} to {high * scale:.1f})"


def table(file, title, columns, lines):
    if not lines:
        return
    print(f"\n### {title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", file=file)
    for line in lines:
        print(f"| {' | '.join(str(value) for value in line)} |", file=file)


# ---- head ---------------------------------------------------------------------------------------


def processor_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^model name\s*: (.*)$", file.read(), re.M)
    return found[1] if found else platform.machine()


def command(folder):
    """The command of the run, as kept beside its results."""
    path = os.path.join(folder, "command")
    if not os.path.exists(path):
        return "evaluate run"
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def head(file, arguments, rows):
    times = sorted(row["time"] for row in rows)
    others = [row["others"] for row in rows if "others" in row]
    rounds = len({row["key"][3] for row in rows})
    print(f"{times[0]} to {times[-1]}; {processor_name()}, {os.cpu_count()} processors, "
          f"Linux {platform.release()}; {len(rows)} runs in {rounds} rounds.", file=file)
    print(f"\n    {command(arguments.results)}\n", file=file)
    failed = [row for row in rows if row not in good(rows)]
    for row in failed:
        print(f"Failed: {' '.join(map(str, row['key']))}.", file=file)
    if others:
        print(f"Other programs used {100 * statistics.median(others):.1f} % of the processors during a "
              f"run (median), {100 * max(others):.1f} % at most.", file=file)


# ---- cost -----------------------------------------------------------------------------------


def write_overhead(file, rows, interval, measure, name):
    workloads, found = workloads_of(rows), overheads(rows, interval, measure)
    lines = [[technique, *(cell(found[technique][w], 100) for w in workloads),
              f"{100 * geometric_mean(found[technique], workloads):.1f}"]
             for technique in TECHNIQUES if technique in found]
    differences = noise(rows, measure)
    lines.append(["(none, twice: difference)", *(cell(differences[w], 100) for w in workloads), ""])
    table(file, f"Overhead in % of {name}, every {interval}: median (quartiles)",
          ["technique", *workloads, "geometric mean"], lines)


def factor(found, samples):
    """What jvmti adds, divided by what partial-incremental adds; of each sample if wanted."""
    if len(found) < 2:
        return "noise"
    (one, its), (other, its_own) = (found[technique] for technique in (MODES[0], MODES[-1]))
    return f"{one / other * (its_own / max(1, its) if samples else 1):.1f}"


def write_factors(file, rows, interval):
    workloads, lines = workloads_of(rows), []
    for measure, name, samples in (("wall", "run time", False), ("processor", "processor time", False),
                                   ("processor", "processor time for each sample", True)):
        found = added(rows, interval, measure)
        if not any(found.values()):
            return
        lines.append([name, *(factor(found[workload], samples) for workload in workloads)])
    table(file, f"What jvmti adds, divided by what partial-incremental adds, every {interval}",
          ["", *workloads], lines)


# ---- samples --------------------------------------------------------------------------------


def milliseconds(interval):
    return float(interval.removesuffix("ms"))


def samples_line(workload, technique, runs):
    obtained = [r["stats"]["traces"] / max(1, r["latency"][2]) for r in runs]
    allowed = [100 * r["stats"]["traces"] * milliseconds(r["key"][2]) / max(0.1, r["threads_ms"])
               for r in runs if "threads_ms" in r]
    missed = [r["latency"][1] / max(1, r["latency"][0] + r["latency"][1]) for r in runs]
    middle = [statistics.median(r["latency"][k] for r in runs) for k in range(3, 9)]
    return [workload, technique, cell(obtained, 100), cell(allowed),
            cell(missed, 100),
            cell([r["stats"]["traces"] for r in runs]),
            cell([r["stats"]["truncated"] for r in runs]),
            cell([r["stats"]["depth_mean"] for r in runs]), *(f"{value:.0f}" for value in middle)]


def write_samples(file, rows, interval):
    lines = []
    for workload, technique in itertools.product(workloads_of(rows), TECHNIQUES):
        runs = [row for row in good(rows) if row["key"][:3] == (workload, technique, interval)]
        if technique == "ticks":
            continue
        if runs and technique == "jfr":
            counts = [row["samples"] for row in runs]
            lines.append([workload, technique, "", "", "", cell(counts), *[""] * 8])
        elif runs:
            lines.append(samples_line(workload, technique, runs))
    table(file, f"Samples and their latency in us, every {interval}",
          ["workload", "technique", "obtained, % of expected", "% of processor time",
           "times missed, %", "samples",
           "truncated", "frames", "2.5 %", "25 %", "50 %", "75 %", "97.5 %", "largest"], lines)


# ---- similarity -----------------------------------------------------------------------------


def compare(incstack, one, other):
    """Overlap, and hot-edge coverage of the first over the second, of the edges, in percent."""
    result = subprocess.run([incstack, "compare", "--similarity", one, other], capture_output=True,
                            text=True, check=True)
    found = {line[:30].strip(): line[30:].split() for line in result.stdout.splitlines()}
    return [100 * float(found[name][1]) if found[name][1] != "n/a" else math.nan
            for name in ("degree of overlap", "hot-edge coverage, A over B")]


def similarities(arguments, pairs):
    """Two lists: overlap and coverage of each pair of runs whose profiles are there."""
    paths = [[os.path.join(arguments.results, profile_name(key) + ".pb.gz") for key in pair]
             for pair in pairs]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda pair: compare(arguments.incstack, *pair),
                         [pair for pair in paths if all(map(os.path.exists, pair))])
    columns = list(zip(*found)) or [(), ()]
    return [[value for value in column if not math.isnan(value)] for column in columns]


def merged(arguments, keys, folder):
    """The profiles of all rounds of a technique, added up, as the papers compare them; or None."""
    paths = [os.path.join(arguments.results, profile_name(key) + ".pb.gz") for key in keys]
    paths = [path for path in paths if os.path.exists(path)]
    output = os.path.join(folder, profile_name(keys[0]) + ".pb.gz") if paths else None
    if paths:
        subprocess.run([arguments.incstack, "merge", "-o", output, *paths], check=True,
                       stderr=subprocess.DEVNULL)
    return output


def merged_similarity(arguments, keys, others):
    """Overlap of the merged profiles with those of jvmti, and coverage over them, as cells."""
    with tempfile.TemporaryDirectory() as folder:
        pair = [merged(arguments, each, folder) for each in (keys, others) if each]
        if len(pair) < 2 or None in pair:
            return ["", ""]
        return [f"{value:.1f}" for value in compare(arguments.incstack, *pair)]


def write_similarity(file, arguments, rows, interval):
    lines = []
    for workload, technique in itertools.product(workloads_of(rows), MODES):
        keys = sorted(row["key"] for row in good(rows)
                      if row["key"][:3] == (workload, technique, interval))
        within = similarities(arguments, list(itertools.combinations(keys, 2)))
        between = [[], []]
        if technique != "jvmti":
            between = similarities(arguments, [(key, (workload, "jvmti", interval, key[3]))
                                               for key in keys])
        others = [(workload, "jvmti", interval, key[3]) for key in keys]
        whole = ["", ""]
        if technique != "jvmti":
            whole = merged_similarity(arguments, keys, others)
        if any(within + between):
            lines.append([workload, technique, *map(cell, within), *map(cell, between), *whole])
    table(file, f"Similarity of the edges in %, every {interval}",
          ["workload", "technique", "overlap within", "coverage within", "overlap with jvmti",
           "coverage over jvmti", "merged: overlap", "merged: coverage"], lines)


def write(file, arguments, rows):
    head(file, arguments, rows)
    for interval in intervals_of(rows):
        write_overhead(file, rows, interval, "processor", "processor time")
        write_overhead(file, rows, interval, "wall", "run time")
        write_factors(file, rows, interval)
        write_samples(file, rows, interval)
        write_similarity(file, arguments, rows, interval)
