# SPDX-License-Identifier: MIT
"""Finds which lines each quick test runs, from a coverage build, and how long it takes there."""
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import threading
import time

from suite import Runner, tests_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "coverage"))
import report as coverage  # pylint: disable=wrong-import-position

PATIENCE = 900


def programs(build_folder, test):
    """The objects with the product's code in this test, as arguments of llvm-cov. With the
    programs of all tests, llvm-cov would take seconds."""
    patterns = ["libincstack_*.so", "incstack"]
    if test.name.startswith("toyvm."):
        patterns.append("tests/toyvm_*")
    found = [path for pattern in patterns for path in sorted(build_folder.glob(pattern))]
    found += [path for path in map(pathlib.Path, test.command)
              if path.parent in (build_folder / "tests", build_folder / "tests" / "fuzz")]
    return [str(path) for path in dict.fromkeys(found)
            if path.is_file() and path.stat().st_mode & 1 and path.name != "toyvm_faulty"]


def lines_run(build_folder, profiles, test):
    """Pairs of path and line that these profiles of a test show."""
    raw, merged = sorted(profiles.glob("*.profraw")), profiles / "merged"
    # The file of a process that is killed as it starts has no header.
    if not raw or subprocess.run(["llvm-profdata", "merge", "-sparse", "-failure-mode=all", "-o",
                                  merged, *raw], capture_output=True, check=False).returncode:
        return []
    first, *rest = programs(build_folder, test)
    shown = subprocess.run(["llvm-cov", "export", "-format=lcov", "-instr-profile", merged, first,
                            *(word for path in rest for word in ("-object", path))],
                           capture_output=True, text=True, check=False).stdout
    files = collections.defaultdict(coverage.File)
    coverage.add_lines(files, shown.splitlines(), build_folder.parents[1])
    return [(path, line) for path, file in files.items()
            for line, count in file.lines.items() if count]


class Reach:
    """By path and line, the tests that run it; by test, its time."""

    def __init__(self, seconds, tests):
        self.seconds, self.tests = seconds, tests

    @classmethod
    def measure(cls, tree, jobs):
        seconds, tests = {}, collections.defaultdict(lambda: collections.defaultdict(list))
        position, lock, todo = iter(range(1 << 30)), threading.Lock(), tests_of(tree.build_folder)

        def run_some(number):
            profiles = tree.folder.with_suffix(f".profiles{number}")
            runner = Runner(tree.folder.with_suffix(f".reach{number}"),
                            LLVM_PROFILE_FILE=f"{profiles}/%m%c.profraw")
            while (at := next(position)) < len(todo):
                shutil.rmtree(profiles, ignore_errors=True)
                profiles.mkdir()
                name, start = todo[at].name, time.monotonic()
                failure = runner.run(todo[at], PATIENCE)
                spent = round(time.monotonic() - start, 2)
                found = lines_run(tree.build_folder, profiles, todo[at])
                with lock:
                    if failure:
                        print(f"mutate: left out, as it fails without a mutant: {name}")
                        continue
                    seconds[name] = spent
                    for path, line in found:
                        tests[path][str(line)].append(name)

        together([threading.Thread(target=run_some, args=(n,), daemon=True) for n in range(jobs)])
        return cls(seconds, tests)

    @classmethod
    def load(cls, path):
        return cls(*json.loads(path.read_text(encoding="utf-8")))

    def save(self, path):
        path.write_text(json.dumps([self.seconds, self.tests]), encoding="utf-8")

    def of(self, mutant, source):
        """The names of the tests that run a line that the mutant replaces."""
        last = source.count("\n", 0, mutant.end) + 1
        lines = self.tests.get(mutant.path, {})
        return {name for line in range(mutant.line, last + 1) for name in lines.get(str(line), ())}


def together(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
