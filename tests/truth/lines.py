#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The lines and the inlined functions of a profile, against what a program says of itself,
against DHAT and, if it is installed, heaptrack.

usage: lines.py INCSTACK PROGRAM BUILD_FOLDER

The head of a program says what it leaks, in a chain of labels, innermost first:

    leak 640 inner<outer<top

A label is in a comment of the line that it names, before the name of the function: `<inner inner>`. Only
frames whose source file is the program's count, because a standard library may change its own. `peak` is the
weight when the heap was largest, `calls` a number of allocations, `cpu` the least share of the CPU time in
percent. A chain that ends with `<` has further frames, which do not count. The other tools must find the leaks in
the same chains.
"""
import gzip
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tool"))
from pprof_message import fields, numbers  # noqa: E402

SKIPPED = 77
COMPILERS = {
    ".c": ["gcc", "-std=gnu11", "-g"],
    ".cpp": ["g++", "-std=c++17", "-g"],
    ".rs": ["rustc", "-g"],
}
KINDS = {"leak": "live at exit", "peak": "live at peak", "calls": "allocations", "cpu": "CPU time"}


def expectations(source):
    """The options of the compiler, and for each kind the weights of chains of (line, function)."""
    text = source.read_text()
    labels = {}
    for number, line in enumerate(text.splitlines(), 1):
        for label, function in re.findall(r"<(\w+) ([^>]*)>", line):
            labels[label] = (number, function)
    flags = re.search(r"flags: (.*)", text)[1].split()
    wanted = {}
    for kind, amount, chain in re.findall(r"^ \* (leak|peak|calls|cpu) (\d+) (\S+)$", text, re.M):
        frames = tuple(labels[label] if label else None for label in chain.split("<"))
        wanted.setdefault(kind, {})[frames] = int(amount)
    assert wanted, f"{source} expects nothing"
    return flags, wanted


def build(source, flags, folder):
    compiler = COMPILERS[source.suffix]
    if not shutil.which(compiler[0]):
        print(f"skipped: {compiler[0]} is not installed")
        sys.exit(SKIPPED)
    program = folder / source.name.replace(".", "_")
    subprocess.run([*compiler, *flags, "-o", program, source], check=True)
    return program


class Pprof:
    """The samples of a pprof file as (chain of (file, line, function), weights by kind)."""

    def __init__(self, path):
        self.strings, self.functions, self.locations = [], {}, {}
        kinds, samples = [], []
        for number, value in fields(gzip.decompress(path.read_bytes())):
            if number == 1:
                kinds.append(dict(fields(value)).get(1, 0))
            elif number == 2:
                samples.append(value)
            elif number == 4:
                self.add_location(value)
            elif number == 5:
                parts = dict(fields(value))
                self.functions[parts[1]] = (parts.get(2, 0), parts.get(4, 0))
            elif number == 6:
                self.strings.append(value.decode())
        self.kinds = [self.strings[kind] for kind in kinds]
        self.samples = [self.sample(value) for value in samples]

    def add_location(self, value):
        lines = []
        for number, part in fields(value):
            if number == 1:
                name = part
            elif number == 4:
                line = dict(fields(part))
                lines.append((line[1], line.get(2, 0)))
        self.locations[name] = lines

    def chain(self, location):
        for function, line in self.locations[location]:
            name, file = self.functions[function]
            yield self.strings[file], line, self.strings[name]

    def sample(self, value):
        locations, weights = [], []
        for number, part in fields(value):
            if number in (1, 2):
                into = locations if number == 1 else weights
                into.extend(numbers(part) if isinstance(part, bytes) else [part])
        return [frame for location in locations for frame in self.chain(location)], weights


def own_frames(chain, source):
    """Rust's name of main's caller, and what calls main, have no line of the source."""
    return tuple((line, name) for file, line, name in chain if Path(file).name == source.name)


def is_function(name, wanted):
    """`name` may have a namespace, parameters, a clone's suffix or arguments of a template."""
    return not wanted or re.search(r"(?<!\w)" + re.escape(wanted) + r"(?!\w)", name) is not None


def equal(chain, wanted):
    if wanted[-1] is None:
        wanted = wanted[:-1]
        chain = chain[:len(wanted)]
    return len(chain) == len(wanted) and all(
        line == number and is_function(name, function)
        for (line, name), (number, function) in zip(chain, wanted))


def sum_of(chains, wanted):
    return sum(weight for chain, weight in chains.items() if equal(chain, wanted))


def profile_of(incstack, command, program, folder):
    trace = folder / f"{program.name}.{command}"
    run = [incstack, command, "-o", trace, "--", program]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    out = folder / f"{program.name}.{command}.pb.gz"
    found = [path for path in folder.glob(f"{trace.name}*") if path.suffix in ("", ".trace", f".{command}")]
    subprocess.run([incstack, "convert", "--allocators", found[0], out], check=True)
    return Pprof(out)


def chains_of(profile, kind, source):
    at = profile.kinds.index(KINDS[kind])
    chains = Counter()
    for chain, weights in profile.samples:
        chains[own_frames(chain, source)] += weights[at]
    return chains


def check(chains, wanted, kind, title):
    failed = 0
    for frames, amount in wanted.items():
        found = sum_of(chains, frames)
        if kind == "cpu":
            found = 100 * found // max(1, sum(chains.values()))
        if found < amount if kind == "cpu" else found != amount:
            failed += 1
            print(f"{title}: {kind} {amount} wanted in {frames}, found {found}; there are:")
            for chain, weight in chains.most_common(8):
                print(f"  {weight} {chain}")
    return failed


def dhat_leaks(program, source, folder):
    """DHAT's bytes at the end of the program, by chain."""
    out = folder / f"{program.name}.dhat"
    subprocess.run(["valgrind", "--tool=dhat", f"--dhat-out-file={out}", "--read-inline-info=yes", program],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = json.loads(out.read_text())
    frame = re.compile(r"0x\w+: (.*) \((?:in )?([^:()]*)(?::(\d+))?\)$")
    table = [frame.match(text) for text in found["ftbl"]]
    chains = Counter()
    for point in found["pps"]:
        frames = [table[number] for number in point["fs"] if table[number]]
        chain = [(f[2], int(f[3] or 0), f[1]) for f in frames]
        chains[own_frames(chain, source)] += point["eb"]
    return chains


def heaptrack_leaks(incstack, program, source, folder):
    """heaptrack's bytes at the end of the program, by chain."""
    made = folder / f"{program.name}.heaptrack"
    subprocess.run(["heaptrack", "-o", made, program], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    out = folder / f"{program.name}.heaptrack.pb.gz"
    subprocess.run([incstack, "convert", *folder.glob(f"{made.name}.*zst"), out], check=True)
    return chains_of(Pprof(out), "leak", source)


def line_leaks(incstack, program, folder):
    """What the report says is still live at exit, by line of the program's own source."""
    trace = folder / f"{program.name}.heap"
    report = json.loads(subprocess.run([incstack, "report", "--json", "--allocators", trace], check=True,
                                       capture_output=True).stdout)
    at = [kind["name"] for kind in report["kinds"]].index(KINDS["leak"])
    lines = Counter()
    for line in report["lines"]:
        if line["file"]:
            lines[Path(line["file"]).name, line["line"]] += line["own"][at]
    return lines


def check_lines(lines, wanted, source):
    """Several chains may end on one line."""
    sums = Counter()
    for frames, amount in wanted.items():
        sums[source.name, frames[0][0]] += amount
    for place, amount in sums.items():
        if lines[place] != amount:
            print(f"the report has {lines[place]} bytes at {place}, not {amount}")
    return sum(lines[place] != amount for place, amount in sums.items())


def main(incstack, source, folder):
    folder.mkdir(parents=True, exist_ok=True)
    flags, wanted = expectations(source)
    program = build(source, flags, folder)
    command = "cpu" if "cpu" in wanted else "heap"
    profile = profile_of(incstack, command, program, folder)
    failed = sum(check(chains_of(profile, kind, source), wanted[kind], kind, "incstack") for kind in wanted)
    if "leak" in wanted:
        failed += check_lines(line_leaks(incstack, program, folder), wanted["leak"], source)
    if "leak" in wanted and shutil.which("valgrind"):
        failed += check(dhat_leaks(program, source, folder), wanted["leak"], "leak", "DHAT")
    if "leak" in wanted and shutil.which("heaptrack"):
        failed += check(heaptrack_leaks(incstack, program, source, folder), wanted["leak"], "leak", "heaptrack")
    print(f"{source.name}: {sum(map(len, wanted.values()))} expectations, {failed} not met")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
