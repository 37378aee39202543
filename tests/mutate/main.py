# SPDX-License-Identifier: MIT
"""mutate [--seed N] [--count N] [-j N] [--list] [--preset NAME] [PATH...]

Single-point mutants of the product's code at HEAD, chosen by the seed from the files
given (all but the tool's), each run against the quick tests that reach it until one fails.
A change that does not compile, or compiles to the same code as before, is not a mutant.
"""
import argparse
import pathlib
import random
import resource
import subprocess
import sys
import threading
import time

from operators import mutants_of
from reach import Reach, together
from suite import Order, Runner, tests_of
from tree import HOUSES, Tree, processors, quiet

ROOT = pathlib.Path(__file__).resolve().parents[2]
EQUIVALENTS = pathlib.Path(__file__).with_name("equivalents.txt")
PATIENCE = 3, 10  # the limit of a test: this many times its usual time, and this many seconds more


def equivalents(text):
    """Pairs of path and change. A reason follows each, indented."""
    heads = [line for line in text.splitlines() if line and line[0] not in "#\t "]
    return {tuple(head.split(": ", 1)) for head in heads}


def sources(commit, paths):
    listed = subprocess.run(["git", "ls-tree", "-r", "--name-only", commit, *HOUSES], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split()
    chosen = [p for p in listed if p.endswith((".c", ".h")) and (
        any(p == q or p.startswith(q.rstrip("/") + "/") for q in paths) if paths
        else not p.startswith("profiler/tool/"))]
    if not chosen:
        raise SystemExit("mutate: no C file of the product is at these paths")
    return {path: quiet("git", "-C", ROOT, "show", f"{commit}:{path}").stdout for path in chosen}


def choose(texts, seed):
    known = equivalents(EQUIVALENTS.read_text(encoding="utf-8"))
    found = [mutant for path, text in sorted(texts.items()) for mutant in mutants_of(path, text)
             if (path, mutant.change) not in known]
    random.Random(seed).shuffle(found)
    return found


class Campaign:
    """The state that the workers share: the next mutant, the order of tests, the results."""

    def __init__(self, mutants, texts, count, reach):
        self.mutants, self.texts, self.count = iter(mutants), texts, count
        self.reach, self.order = reach, Order(reach.seconds)
        self.lock = threading.Lock()
        self.running, self.results, self.skipped = 0, [], 0

    def next(self):
        with self.lock:
            if len(self.results) + self.running >= self.count:
                return None
            self.running += 1
            return next(self.mutants, None)

    def done(self, mutant, kind, test, seconds):
        with self.lock:
            self.running -= 1
            if kind != "mutant":
                self.skipped += 1
                return
            self.results.append((mutant, test))
            if test:
                self.order.note(test[0], mutant.path)
            verdict = f"noticed by {test[0]} ({test[1]})" if test else "SURVIVED"
            if not self.reach.of(mutant, self.texts[mutant.path]):
                verdict += ", no test reaches it"
            print(f"{len(self.results):4} {seconds:4.0f} s {mutant.path}:{mutant.line} "
                  f"{mutant.operator}: {verdict}", flush=True)


class NoCode(Exception):
    """The product can be built, but a test that includes one of its files cannot."""


class Worker(threading.Thread):
    def __init__(self, tree, campaign):
        super().__init__(daemon=True)
        self.tree, self.campaign = tree, campaign
        self.tests = {test.name: test for test in tests_of(tree.build_folder)}
        self.runner = Runner(tree.folder.with_suffix(".tmp"))

    def notice(self, mutant, source):
        order, reaching = self.campaign.order, self.campaign.reach.of(mutant, source)
        for name in order.sort(reaching, mutant.path):
            test = self.tests[name]
            if not self.tree.build_for(test):
                raise NoCode
            limit = PATIENCE[0] * order.seconds[name] + PATIENCE[1]
            failure = self.runner.run(test, limit)
            if failure:
                return name, failure
        return None

    def run(self):
        while mutant := self.campaign.next():
            start = time.monotonic()
            source = self.campaign.texts[mutant.path]
            kind, test = self.tree.kind(mutant, source), None
            try:
                test = self.notice(mutant, source) if kind == "mutant" else None
            except NoCode:
                kind = "no code"
            self.tree.write(mutant.path, source)
            self.campaign.done(mutant, kind, test, time.monotonic() - start)


def report(campaign, started):
    survivors = sorted((m for m, test in campaign.results if not test),
                       key=lambda m: (m.path, m.line))
    tried = len(campaign.results)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = usage.ru_utime + usage.ru_stime - started
    print(f"mutate: {campaign.skipped} had the same code or none; "
          f"{cpu / max(tried, 1):.1f} s of one processor per mutant")
    for m in survivors:
        print(f"survived {m.path}:{m.line} {m.operator}\n    - {m.before}\n    + {m.after}")
    print(f"mutate: tried={tried} noticed={tried - len(survivors)} survived={len(survivors)}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0],
                                     description="\n".join(__doc__.splitlines()[2:]))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("-j", "--jobs", type=int, default=processors())
    parser.add_argument("--list", action="store_true", help="show the mutants, run none")
    parser.add_argument("--preset", default="release")
    parser.add_argument("paths", nargs="*", metavar="PATH")
    options = parser.parse_args()
    commit = quiet("git", "-C", ROOT, "rev-parse", "HEAD").stdout.strip()
    texts = sources(commit, options.paths)
    mutants = choose(texts, options.seed)
    if options.list:
        for m in mutants[:options.count]:
            print(f"{m.path}:{m.line} {m.operator}\n    - {m.before}\n    + {m.after}")
        return
    folder = ROOT / "build" / "mutate"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"reach-{commit}.json"
    if not kept.exists():
        Reach.measure(Tree(ROOT, folder / "tree0", "coverage", commit), options.jobs).save(kept)
    campaign = Campaign(mutants, texts, options.count, Reach.load(kept))
    trees = [Tree(ROOT, folder / f"tree{n}", options.preset, commit)
             for n in range(min(options.jobs, options.count))]
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    together([Worker(tree, campaign) for tree in trees])
    report(campaign, usage.ru_utime + usage.ru_stime)


if __name__ == "__main__":
    sys.exit(main())
