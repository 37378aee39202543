# SPDX-License-Identifier: MIT
"""Plots of an experiment: overhead.svg and latency.svg, drawn by gnuplot (Debian: gnuplot-nox)."""
import os
import shutil
import statistics
import subprocess
import sys

from results import MODES, TECHNIQUES, good, intervals_of, overheads, quartiles, workloads_of

COLORS = {"jvmti": "#a03020", "partial": "#d08030", "incremental": "#4070b0",
          "partial-incremental": "#208050", "partial-incremental+realtime": "#60b080",
          "ticks": "#c0c0c0", "jfr": "#707070"}


def series(name, lines):
    text = "\n".join(" ".join(str(value) for value in line) for line in lines)
    return f"${name} << EOD\n{text}\nEOD\n"


def page(path, rows_of_plots, width=900):
    return (f"set terminal svg size {width},{260 * rows_of_plots} font 'sans-serif,11' "
            f"background '#ffffff'\nset output '{path}'\n"
            f"set multiplot layout {rows_of_plots},1\nset style fill solid 0.8\n"
            "set grid ytics linecolor '#dddddd'\nset key outside right top\nset border 3\n"
            "set xtics nomirror scale 0\nset ytics nomirror\n")


def x_labels(workloads):
    labels = ", ".join(f"'{name}' {place}" for place, name in enumerate(workloads))
    return f"set xtics ({labels})\nset xrange [-0.6:{len(workloads) - 0.4}]\n"


def place(number, count):
    """Where the box of a technique is, around the tick of its workload."""
    return (number - (count - 1) / 2) * 0.8 / count


def overhead(path, rows):
    workloads, intervals = workloads_of(rows), intervals_of(rows)
    text = page(path, len(intervals))
    for interval in intervals:
        found, parts = overheads(rows, interval, "processor"), []
        used = [name for name in TECHNIQUES if name in found]
        for number, technique in enumerate(used):
            lines = [[at + place(number, len(used)), *(100 * q for q in quartiles(values))]
                     for at, name in enumerate(workloads)
                     if (values := found[technique][name])]
            name = f"d{len(parts)}"
            text += series(name, lines)
            width = 0.7 / len(used)
            parts.append(f"${name} using 1:3:({width}) with boxes linecolor rgb "
                         f"'{COLORS[technique]}' title '{technique}', ${name} using 1:3:2:4 "
                         "with yerrorbars linecolor rgb '#000000' pointsize 0 notitle")
        text += x_labels(workloads) + (f"set title 'every {interval}'\n"
                                       "set ylabel 'overhead, % of processor time'\n"
                                       f"plot {', '.join(parts)}\n")
    return text


def latency_line(rows, workload, technique, interval):
    """The middle of each quantile over the runs, as a box: 25 %, 2.5 %, 97.5 %, 75 %, and 50 %."""
    runs = [row["latency"] for row in good(rows)
            if row["key"][:3] == (workload, technique, interval) and "latency" in row]
    if not runs:
        return None
    low, first, middle, third, high = (max(0.1, statistics.median(run[k] for run in runs))
                                       for k in range(3, 8))
    return [first, low, high, third, middle]


def latency(path, rows):
    workloads, intervals = workloads_of(rows), intervals_of(rows)
    text = page(path, len(intervals)) + "set logscale y\n"
    for interval in intervals:
        parts = []
        for number, technique in enumerate(MODES):
            boxes = [(at, latency_line(rows, name, technique, interval))
                     for at, name in enumerate(workloads)]
            lines = [[at + place(number, len(MODES)), *box] for at, box in boxes if box]
            if not lines:
                continue
            name = f"d{len(parts)}"
            text += series(name, lines)
            color = f"linecolor rgb '{COLORS[technique]}'"
            parts.append(f"${name} using 1:2:3:4:5:(0.15) with candlesticks whiskerbars 0.5 "
                         f"{color} title '{technique}', ${name} using 1:6:6:6:6:(0.15) with "
                         "candlesticks linecolor rgb '#000000' linewidth 2 notitle")
        if parts:
            text += x_labels(workloads) + (f"set title 'every {interval}'\n"
                                           "set ylabel 'latency, us'\n"
                                           f"plot {', '.join(parts)}\n")
    return text


def draw(folder, rows):
    if not shutil.which("gnuplot"):
        print("evaluate: no plots without gnuplot: apt-get install gnuplot-nox", file=sys.stderr)
        return
    for name, make in (("overhead.svg", overhead), ("latency.svg", latency)):
        subprocess.run(["gnuplot"], input=make(os.path.join(folder, name), rows), text=True,
                       check=True)
