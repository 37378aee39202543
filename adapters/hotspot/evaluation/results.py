# SPDX-License-Identifier: MIT
"""The results of an experiment: rows of results.jsonl, and figures that tables and plots share."""
import collections
import itertools
import json
import math
import os
import statistics

MODES = ("jvmti", "partial", "incremental", "partial-incremental")
TECHNIQUES = (*MODES, "partial-incremental+realtime", "ticks", "jfr")


def profile_name(key):
    return "-".join(str(part).replace(" ", "_") for part in key)


def read_rows(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [{**row, "key": tuple(row["key"])} for row in rows]


def quartiles(values):
    if len(values) < 2:
        return (values[0],) * 3 if values else (math.nan,) * 3
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


def workloads_of(rows):
    """In the order of their first runs' names in the results."""
    return list(dict.fromkeys(row["key"][0] for row in rows))


def intervals_of(rows):
    """The longest first."""
    found = {row["key"][2] for row in rows if row["key"][1] != "none"}
    return sorted(found, key=lambda text: -float(text.removesuffix("ms")))


def good(rows):
    return [row for row in rows if not row["status"] and "errors" not in row]


def overheads(rows, interval, measure):
    """{technique: {workload: [overhead of each round]}}: against the mean of the runs without
    sampling of the same round."""
    base = collections.defaultdict(list)
    for row in good(rows):
        workload, technique, _, number = row["key"]
        if technique == "none":
            base[workload, number].append(row[measure])
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in good(rows):
        workload, technique, its, number = row["key"]
        if technique != "none" and its == interval and base[workload, number]:
            ratio = row[measure] / statistics.fmean(base[workload, number])
            found[technique][workload].append(ratio - 1)
    return found


def noise(rows, measure):
    """{workload: [difference of the two runs without sampling of each round]}."""
    base = collections.defaultdict(list)
    for row in good(rows):
        workload, technique, _, number = row["key"]
        if technique == "none":
            base[workload, number].append(row[measure])
    found = collections.defaultdict(list)
    for (workload, _), values in base.items():
        if len(values) == 2:
            found[workload].append(abs(values[0] - values[1]) / statistics.fmean(values))
    return found


def added(rows, interval, measure):
    """{workload: {technique: (median overhead, median of the samples obtained)}} of jvmti and
    partial-incremental, where they can be told from the noise."""
    found, least = overheads(rows, interval, measure), noise(rows, measure)
    result = collections.defaultdict(dict)
    for workload, technique in itertools.product(workloads_of(rows), (MODES[0], MODES[-1])):
        samples = [row["stats"]["traces"] for row in good(rows)
                   if row["key"][:3] == (workload, technique, interval)]
        overhead = statistics.median(found[technique][workload] or [0])
        if samples and least[workload] and overhead > statistics.median(least[workload]):
            result[workload][technique] = overhead, statistics.median(samples)
    return result


def geometric_mean(each, workloads):
    """Of the medians of those workloads that have values."""
    ratios = [1 + statistics.median(each[w]) for w in workloads if each[w]]
    return math.exp(statistics.fmean(map(math.log, ratios))) - 1 if ratios else math.nan
