# SPDX-License-Identifier: MIT
"""The quick tests of a build, as ctest lists them: which of them may notice a mutant of a
file, in which order, and one run of one of them."""
import collections
import dataclasses
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess

# They look at sources, at the installed files, and at ways to link, not at behaviour.
IRRELEVANT = "^(slow|lint|package|link|browser|model|bench)$"
# By folder of src: the labels of the tests that run its code, those that aim at it first.
LABELS = {
    "core": ("unit", "toyvm", "native", "stress", "preload", "tool", "gdb"),
    "arch": ("unit", "native", "toyvm", "preload", "tool", "stress", "gdb"),
    "native": ("native", "unit", "preload", "tool", "stress", "gdb"),
    "preload": ("preload", "tool", "native"),
    "heap": ("unit", "fuzz", "tool", "preload"),
    "profile": ("unit", "fuzz", "tool", "toyvm"),
    "tool": ("tool", "unit", "preload"),
}
SEPARATE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
            # Not the test itself: a signal that process 1 does not handle does nothing.
            "sh", "-c", '"$@"; exit $?', "sh")


@dataclasses.dataclass
class Test:
    name: str
    command: list
    folder: str
    environment: list
    skipped: int
    labels: list


def folder_of(path):
    parts = pathlib.PurePath(path).parts
    return parts[1] if len(parts) > 2 else "core"


def tests_of(build_folder):
    listed = subprocess.run(["ctest", "--show-only=json-v1", "-LE", IRRELEVANT],
                            cwd=build_folder, capture_output=True, text=True, check=True)
    tests = []
    for entry in json.loads(listed.stdout)["tests"]:
        about = {p["name"]: p["value"] for p in entry["properties"]}
        tests.append(Test(entry["name"], entry["command"], about["WORKING_DIRECTORY"],
                          about.get("ENVIRONMENT", []), about.get("SKIP_RETURN_CODE", -1),
                          about.get("LABELS", [])))
    return tests


def can_separate():
    done = subprocess.run([*SEPARATE, "true"], capture_output=True, check=False)
    return done.returncode == 0


class Runner:
    """Runs tests so that nothing of them stays: no process, no file."""

    def __init__(self, scratch):
        self.scratch = pathlib.Path(scratch)
        self.prefix = SEPARATE if can_separate() else ()

    def run(self, test, seconds):
        """None if it passes, or why it does not."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        environment = dict(os.environ, TMPDIR=str(self.scratch))
        environment.update(pair.split("=", 1) for pair in test.environment)
        with open(self.scratch.with_suffix(".out"), "wb") as out, \
             subprocess.Popen([*self.prefix, *test.command], cwd=test.folder, env=environment,
                              stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                              start_new_session=True, preexec_fn=be_harmless) as process:
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = "time"
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return None if status in (0, test.skipped) else f"status {status}"


def be_harmless():
    """If a mutant takes all memory, it is the first to go. A limit would fail other tests."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


class Order:
    """Tests that noticed other mutants of a file come first, then those that bear its name, then
    those that aim at its folder; among equals the short ones."""

    def __init__(self, seconds):
        self.seconds, self.noticed = seconds, collections.Counter()

    def note(self, test, path):
        self.noticed[test.name, path] += 1
        self.noticed[test.name, folder_of(path)] += 1

    def price(self, test, path):
        labels = LABELS[folder_of(path)]
        stem = pathlib.PurePath(path).stem.split("_")[-1]
        chance = 1 + 8 * self.noticed[test.name, path] + self.noticed[test.name, folder_of(path)]
        chance += 4 * (stem in test.name) + 2 * (labels[0] in test.labels)
        return (0.05 + self.seconds[test.name]) / chance

    def tests(self, tests, path):
        labels = LABELS[folder_of(path)]
        able = [t for t in tests if set(labels) & set(t.labels) and t.name in self.seconds]
        return sorted(able, key=lambda test: self.price(test, path))
