#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Recording and report together: the processor time, user and system, of all processes, and the size of the trace
# file that is left; heaptrack and heaptrack_print against `incstack heap`, which reports by itself. Each round has
# both in random order.
import glob
import os
import random
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time

from targets import ROOT, SCRIPT, options, statements, write, write_csv

NODE = """
const words = {};
for (let i = 0; i < SIZE; i++) { const k = 'w' + (i * 7919 % 5003); (words[k] = words[k] || []).push({i, t: 'x'.repeat(i % 17)}); }
const s = JSON.stringify(words), b = JSON.parse(s), m = new Map();
for (const k of Object.keys(b)) m.set(k, b[k].map(o => o.t).join('-'));
console.log(m.size, require('zlib').gzipSync(s).length);
"""

CXX = """
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
int main() { std::map<std::string, std::vector<int>> m; std::regex r("a+b");
    for (int i = 0; i < 10; i++) m[std::to_string(i)].push_back(i);
    std::cout << m.size() << std::regex_match("aab", r); }
"""

JAVA = """
public class Words { public static void main(String[] a) { java.util.Map<String, Integer> m = new java.util.TreeMap<>();
    for (int i = 0; i < SIZE; i++) m.merge("w" + i % 5003, 1, Integer::sum);
    System.out.println(m.size() + m.values().stream().map(String::valueOf).collect(java.util.stream.Collectors.joining()).length()); } }
"""

EQUAL = """
#include <stdlib.h>
int main(void) { for (int i = 0; i < 1000000; i++) { void *volatile p = malloc(48); free(p); } }
"""


class Job:
    def __init__(self, command, environment=None, stdin=None, load=None):
        self.command = command
        self.environment = {**os.environ, **(environment or {})}
        self.stdin = stdin
        self.load = load


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def load_redis(port):
    """Its processes are not counted: they are no children of the profiler."""
    client = ["redis-cli", "-p", port]
    while subprocess.run([*client, "ping"], capture_output=True, check=False).returncode != 0:
        time.sleep(0.05)
    subprocess.run(["redis-benchmark", "-p", port, "-n", "20000", "-q", "-t", "set,get,lpush,hset,sadd,zadd"],
                   stdout=subprocess.DEVNULL, check=True)
    subprocess.run([*client, "shutdown", "nosave"], check=False, capture_output=True)


def jobs(directory, scale):
    os.makedirs(directory, exist_ok=True)
    inside = lambda name: os.path.join(directory, name)
    size = lambda n: str(max(1, int(n * scale)))
    cc1plus = subprocess.run(["gcc", "-print-prog-name=cc1plus"], capture_output=True, text=True,
                             check=True).stdout.strip()
    unit = subprocess.run(["g++", "-E", "-x", "c++", "-"], input=CXX, capture_output=True, text=True,
                          check=True).stdout
    subprocess.run(["cc", "-O1", "-o", inside("equal"), "-x", "c", "-"], input=EQUAL, text=True, check=True)
    port = free_port()
    found = {
        "equal": Job([inside("equal")]),
        "node": Job(["node", write(inside("n.js"), NODE.replace("SIZE", size(200000)))]),
        "cc1plus": Job([cc1plus, "-quiet", "-O0", "-o", "/dev/null", write(inside("t.ii"), unit)]),
        "java": Job(["java", write(inside("Words.java"), JAVA.replace("SIZE", size(1000000)))]),
        "redis": Job(["redis-server", "--port", port, "--save", "", "--appendonly", "no"],
                     load=lambda: load_redis(port)),
        "python3": Job(["/usr/bin/python3", write(inside("p.py"), SCRIPT.replace("SIZE", size(6000)))],
                       {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}),
        "sqlite3": Job(["sqlite3", ":memory:"], stdin=statements(inside("s.sql"), int(size(4000)))),
    }
    return {name: job for name, job in found.items() if shutil.which(job.command[0])}


def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command, job):
    """What the command and its processes took. The load that a server gets is left out."""
    stdin = open(job.stdin, "rb") if job.stdin else subprocess.DEVNULL
    process = subprocess.Popen(command, env=job.environment, stdin=stdin, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    if job.load:
        job.load()
    before = children()
    process.wait()
    if job.stdin:
        stdin.close()
    return children() - before


def run_incstack(job, arguments, path):
    tool = os.path.join(arguments.build, "incstack")
    return run([tool, "heap", "-o", path, "--", *job.command], job), 0.0, os.path.getsize(path)


def run_heaptrack(job, _, path):
    recording = run(["heaptrack", "-o", path, *job.command], job)
    file = max(glob.glob(path + ".*"), key=os.path.getmtime)
    return recording, run(["heaptrack_print", "-f", file], Job([])), os.path.getsize(file)


def clean(path):
    for file in glob.glob(path + "*"):
        os.remove(file)


def measure(name, job, arguments):
    path = os.path.join(arguments.output, f"reports.{name}")
    runs = {run_incstack: [], run_heaptrack: []}
    for _ in range(arguments.runs):
        for who in random.sample(list(runs), len(runs)):
            clean(path)
            runs[who].append(who(job, arguments, path))
    clean(path)
    middle = lambda who, at: statistics.median(result[at] for result in runs[who])
    ours, theirs = run_incstack, run_heaptrack
    return {"program": name, "incstack_s": round(middle(ours, 0), 2),
            "heaptrack_s": round(middle(theirs, 0), 2), "print_s": round(middle(theirs, 1), 2),
            "incstack_kb": round(middle(ours, 2) / 1000, 1), "heaptrack_kb": round(middle(theirs, 2) / 1000, 1)}


def main():
    arguments = options("Recording and report.", 5, 1.0).parse_args()
    if not shutil.which("heaptrack"):
        sys.exit("reports: heaptrack is not installed; scripts/bench installs it")
    arguments.output = arguments.output or os.path.join(arguments.build, "bench")
    os.chdir(ROOT)
    rows = []
    for name, job in jobs(os.path.join(arguments.output, "inputs"), arguments.scale).items():
        if arguments.programs and name not in arguments.programs:
            continue
        rows.append(measure(name, job, arguments))
        print("{program:8} incstack {incstack_s:6} s, {incstack_kb:6} kB   heaptrack {heaptrack_s:6} + "
              "{print_s} s, {heaptrack_kb:6} kB".format(**rows[-1]), flush=True)
    if rows:
        write_csv(os.path.join(arguments.output, "reports.csv"), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
