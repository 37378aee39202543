# SPDX-License-Identifier: MIT
"""report.py LCOV JSON LIST: a table of lines and branches by folder of the product, from two exports of
llvm-cov; into LIST what no test runs. A branch is one way that one condition goes. What is
beside FAULT() in a condition is left out: that is always false in what is measured."""
import collections
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOUSES = ("src", "profiler")
FOLDERS = ("trace", "safepoint", "tracer", "arch", "heap", "mixed", "base", "elf", "native", "profile", "interpose",
           "recorder", "tracefile", "tool")


class File:
    def __init__(self):
        self.lines, self.branches = collections.Counter(), collections.Counter()


def inside(name, root):
    """The path of a file of the product, as the compiler was given it; None of another."""
    path = pathlib.Path(os.path.normpath(name))
    return next((str(path.relative_to(root)) for house in HOUSES
                 if path.is_relative_to(root / house)), None)


def add_lines(files, lcov, root=ROOT):
    """Counts of lines add up: one file may be in several objects."""
    path = None
    for line in lcov:
        key, _, rest = line.strip().partition(":")
        if key == "SF":
            path = inside(rest, root)
        elif path and key == "DA":
            number, count = rest.split(",")[:2]
            files[path].lines[int(number)] += int(count)


def deliberate(text):
    """The numbers of the lines whose conditions stand beside FAULT(), a deliberate bug."""
    found, depth = set(), 0
    for number, line in enumerate(text.splitlines(), 1):
        if depth > 0 or ("FAULT(" in line and not line.startswith("#")):
            found.add(number)
            depth += line.count("(") - line.count(")")
    return found


def text_of(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def add_branches(files, exported, root=ROOT, text=text_of):
    """So do those of conditions, which each object that includes a header has by itself. The
    places of those inside of macros are other files, so they are left out."""
    for entry in exported["data"][0]["files"]:
        path = inside(entry["filename"], root)
        bugs = deliberate(text(entry["filename"])) if path else ()
        for line, column, last, end, taken, otherwise, file, *_ in entry["branches"]:
            if not path or file or line in bugs:
                continue
            place = line, column, last, end
            files[path].branches[place, True] += taken
            files[path].branches[place, False] += otherwise


def folder_of(path):
    return path.split("/")[1]


def covered(counts):
    return sum(1 for count in counts.values() if count), len(counts)


def table(files):
    rows = ["| folder | lines | run | branches | taken |", "|---|---|---|---|---|"]
    for folder in FOLDERS:
        found = [0, 0, 0, 0]
        for path, file in files.items():
            if folder_of(path) == folder:
                for at, number in enumerate((*covered(file.lines), *covered(file.branches))):
                    found[at] += number
        if found[1]:
            rows.append(f"| {folder} | {found[1]} | {100 * found[0] / found[1]:.1f} % "
                        f"| {found[3]} | {100 * found[2] / max(found[3], 1):.1f} % |")
    return "\n".join(rows)


def missing(files):
    """A line for each line of code that is not run, or of which a condition goes one way only."""
    for path in sorted(files, key=lambda path: (FOLDERS.index(folder_of(path)), path)):
        file, text = files[path], (ROOT / path).read_text(encoding="utf-8").splitlines()
        ways = collections.Counter(place[0] for (place, _), count in file.branches.items()
                                   if not count)
        for line in sorted(file.lines.keys() | ways.keys()):
            if not file.lines.get(line, 1):
                yield f"{path}:{line}: not run: {text[line - 1].strip()}"
            elif ways[line]:
                yield f"{path}:{line}: {ways[line]} not taken: {text[line - 1].strip()}"


def main():
    lcov, exported, out = sys.argv[1:]
    files = collections.defaultdict(File)
    with open(lcov, encoding="utf-8") as stream:
        add_lines(files, stream)
    with open(exported, encoding="utf-8") as stream:
        add_branches(files, json.load(stream))
    pathlib.Path(out).write_text("".join(f"{line}\n" for line in missing(files)),
                                         encoding="utf-8")
    print(table(files))


if __name__ == "__main__":
    main()
