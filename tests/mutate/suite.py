# SPDX-License-Identifier: MIT
"""The quick tests of a build, as ctest lists them: how one of them is run, and in which order they
are tried on a mutant."""
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
SEPARATE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
            # The test is not process 1, in which a signal without a handler does nothing.
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
    """Runs tests and removes all processes and files that they leave behind."""

    def __init__(self, scratch, **environment):
        self.scratch, self.environment = pathlib.Path(scratch), environment
        self.prefix = SEPARATE if can_separate() else ()

    def run(self, test, seconds):
        """Returns None if it passes, or why it does not."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        environment = dict(os.environ, TMPDIR=str(self.scratch), **self.environment)
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
    """Makes the kernel end the mutant first if it takes all memory. A limit of memory would make
    other tests fail. All signals get their default action."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A background process of a shell ignores these signals, and the shell of a test cannot
        # change that.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


class Order:
    """Tests that noticed other mutants of a file come first, then those that bear its name, then
    those that noticed mutants of its folder; among equals the short ones."""

    def __init__(self, seconds):
        self.seconds, self.noticed = seconds, collections.Counter()

    def note(self, name, path):
        self.noticed[name, path] += 1
        self.noticed[name, folder_of(path)] += 1

    def price(self, name, path):
        stem = pathlib.PurePath(path).stem.split("_")[-1]
        chance = 1 + 8 * self.noticed[name, path] + self.noticed[name, folder_of(path)]
        return (0.05 + self.seconds[name]) / (chance + 4 * (stem in name))

    def sort(self, names, path):
        return sorted(names, key=lambda name: (self.price(name, path), name))
