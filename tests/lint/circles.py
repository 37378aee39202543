# SPDX-License-Identifier: MIT
"""No circle among the files of a folder: circles.py NM FOLDER OBJECT...

A file and its header are one. A file needs those whose headers it includes, and those that define what its object
calls. Objects of other folders are left out.
"""
import collections
import graphlib
import pathlib
import re
import subprocess
import sys

import symbols


def include_needs(texts):
    """(needs, needed) from {file name: text}."""
    stems = {pathlib.PurePath(name).stem for name in texts}
    for name, text in texts.items():
        for header in re.findall(r'^#\s*include "(\w+)\.h"', text, re.M):
            if header in stems:
                yield pathlib.PurePath(name).stem, header


def call_needs(parsed):
    """(needs, needed) from (object, symbol, type)."""
    parsed = [(member.split(".")[0], name, kind) for member, name, kind in parsed]
    definers = {name: member for member, name, kind in parsed if kind not in "Uwv"}
    for member, name, kind in parsed:
        if kind in "Uwv" and name in definers:
            yield member, definers[name]


def circle_of(needs):
    """A circle as a list of files, the first of them also at its end; empty if there is none."""
    graph = collections.defaultdict(set)
    for name, needed in needs:
        if name != needed:
            graph[name].add(needed)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def main():
    nm, folder, *objects = sys.argv[1:]
    objects = [name for name in objects if folder in name]
    texts = {path.name: path.read_text(encoding="utf-8") for path in pathlib.Path(folder).glob("*.[ch]")}
    out = subprocess.run([nm, "--format=posix", "--extern-only", *objects],
                         check=True, capture_output=True, text=True).stdout
    calls = list(call_needs(symbols.parse(out)))
    if not calls:
        sys.exit("no calls read; nothing was checked")
    if circle := circle_of([*include_needs(texts), *calls]):
        sys.exit(f"{folder} has a circle: " + " needed by ".join(circle))
    print(f"{folder}: {len(texts)} files without a circle")


if __name__ == "__main__":
    main()
