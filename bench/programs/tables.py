#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Puts the figures of the last scripts/bench into docs/performance.md, between its
# comments, with the machine and the date of the run.
import argparse
import csv
import os
import re
import subprocess
import time

from targets import ROOT

PEERS = ["unw_backtrace", "libgcc", "glibc", "fp_walk", "own_walk"]


def read(path):
    with open(path, encoding="utf-8") as rows:
        return list(csv.DictReader(rows))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def walk(rows):
    cells = {}
    for row in rows:
        key = (row["frames"], int(row["depth"]), int(row["popped"]))
        low, high = float(row["ratio_min"]), float(row["ratio_max"])
        cells.setdefault(key, {})[row["peer"]] = (
            f"{float(row['ratio_median']):.3g} [{low:.3g}..{high:.3g}]")
    return table(["frames", "depth", "k"] + PEERS,
                 [list(key) + [cell.get(peer, "") for peer in PEERS] for key, cell in cells.items()])


def handler(rows):
    names = list(dict.fromkeys(row["technique"] for row in rows))
    cells = {}
    for row in rows:
        text = row["ns"]
        if row["technique"] != "incremental":
            text += f" = {row['ratio']} [{row['ratio_low']}..{row['ratio_high']}]"
        cells.setdefault(row["depth"], {})[row["technique"]] = text
    return table(["depth"] + names, [[depth] + [cell[name] for name in names]
                                     for depth, cell in cells.items()])


def windows(rows):
    head = ["program", "depth", "unw_backtrace ns", "full ns", "validate ns", "patch ns",
            "unw_backtrace / patch", "full / patch", "goal"]
    return table(head, [[r["program"], r["depth"], r["unw_backtrace_ns"], r["full_ns"],
                         r["validate_ns"], r["patch_ns"],
                         f"{r['ratio']} [{r['ratio_low']}..{r['ratio_high']}]", r["full_ratio"],
                         r["wanted"]] for r in rows])


def heaptrack(rows):
    head = ["program", "allocations", "bare s", "heaptrack added s", "incstack added s",
            "heaptrack ns each", "incstack ns each", "heaptrack / incstack", "goal"]
    return table(head, [[r["program"], r["allocations"], r["bare_s"], r["heaptrack_added_s"],
                         r["incstack_added_s"], r["heaptrack_ns"], r["incstack_ns"],
                         f"{r['ratio']} [{r['ratio_low']}..{r['ratio_high']}]", r["wanted"]]
                        for r in rows])


def cpu(rows):
    names = list(dict.fromkeys(row["profiler"] for row in rows))
    cells = {}
    for r in rows:
        cells.setdefault((r["program"], r["bare_s"]), {})[r["profiler"]] = (
            f"{r['added_percent']} [{r['added_low']}..{r['added_high']}], {r['samples_a_second']}/s")
    return table(["program", "bare s"] + names, [[*key] + [cell[name] for name in names]
                                                 for key, cell in cells.items()])


def reports(rows):
    head = ["program", "incstack heap s", "heaptrack s", "heaptrack_print s", "incstack kB", "heaptrack kB",
            "incstack / heaptrack"]
    return table(head, [[r["program"], r["incstack_s"], r["heaptrack_s"], r["print_s"], r["incstack_kb"],
                         r["heaptrack_kb"], f"{float(r['incstack_kb']) / float(r['heaptrack_kb']):.2g}"] for r in rows])


MAKERS = {"walk": walk, "handler": handler, "windows": windows, "heaptrack": heaptrack, "cpu": cpu, "reports": reports}


def machine(path):
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        model = re.search(r"model name\s*: (.*)", lines.read()).group(1)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.strip()
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(os.path.getmtime(path)))
    return f"{when}, {model}, {os.cpu_count()} processors, Linux {os.uname().release}, on {commit}."


def main():
    parser = argparse.ArgumentParser(description="Figures into docs/performance.md.")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--only", choices=MAKERS, help="leave the other tables as they are")
    arguments = parser.parse_args()
    directory = os.path.join(arguments.build, "bench")
    document = os.path.join(ROOT, "docs/performance.md")
    with open(document, encoding="utf-8") as text:
        page = text.read()
    for name in [arguments.only] if arguments.only else MAKERS:
        path = os.path.join(directory, f"{name}.csv")
        block = f"{machine(path)}\n\n{MAKERS[name](read(path))}"
        page, found = re.subn(f"<!-- {name} -->.*?<!-- end -->",
                              lambda _, n=name, b=block: f"<!-- {n} -->\n{b}\n<!-- end -->",
                              page, flags=re.DOTALL)
        if found != 1:
            raise SystemExit(f"tables: {document} has no place for {name}")
    with open(document, "w", encoding="utf-8") as out:
        out.write(page)


if __name__ == "__main__":
    main()
