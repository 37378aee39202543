# SPDX-License-Identifier: MIT
"""A separate worktree, its build, and the files of the build that are the product's object code."""
import hashlib
import os
import pathlib
import subprocess

# Warnings of a mutant are not errors. What the quick tests do not need is not linked.
OPTIONS = ("-DINCSTACK_WERROR=OFF", "-DINCSTACK_BENCH=OFF", "-DINCSTACK_EXAMPLES=OFF")


HOUSES = ("src", "profiler")  # the folders of the product

# By the first part of a test's name: programs that its command does not name.
MORE = {"toyvm": "tests/toyvm_", "crosscheck": "tests/crosscheck/"}


def quiet(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, **options)


class Tree:
    def __init__(self, root, folder, preset, commit):
        self.folder, self.preset = pathlib.Path(folder), preset
        self.build_folder = self.folder / "build" / preset
        self.digests = {}
        if not (self.folder / ".git").exists():
            quiet("git", "-C", root, "worktree", "prune")
            self.must("git", "-C", root, "worktree", "add", "-f", "--detach", self.folder, commit)
        self.must("git", "-C", self.folder, "checkout", "-q", "-f", "--detach", commit)
        self.must("cmake", "--preset", preset, "-G", "Ninja", *OPTIONS, cwd=self.folder)
        self.must("ninja", "-C", self.build_folder)
        listed = quiet("ninja", "-C", self.build_folder, "-t", "targets", "all").stdout
        self.targets = {line.split(": ")[0] for line in listed.splitlines()}
        self.programs = {line.split(": ")[0] for line in listed.splitlines() if "_LINKER_" in line}
        self.original = self.objects()

    @staticmethod
    def must(*command, **options):
        done = quiet(*command, **options)
        if done.returncode:
            raise RuntimeError(f"mutate: {' '.join(map(str, command))}\n"
                             f"{done.stdout[-3000:]}{done.stderr[-3000:]}")

    def build(self, targets):
        return quiet("ninja", "-C", self.build_folder, "-j", 1, *targets).returncode == 0

    def build_for(self, test):
        """Links the programs that this test runs. All programs for each mutant would take too
        long."""
        paths = [os.path.relpath(word, self.build_folder) for word in test.command if "/" in word]
        folder = MORE.get(test.name.split(".")[0], "\0")
        wanted = [path for path in self.programs
                  if path in paths or path.startswith(folder) and path != "tests/toyvm_faulty" or
                  path == "incstack" or "/" not in path and path.endswith(".so")]
        return self.build(sorted(wanted))

    def objects(self):
        """A digest of each object of the product, without the sections that only debuggers read."""
        found = {}
        objects = self.build_folder / "CMakeFiles"
        for path in sorted(one for house in HOUSES for one in objects.glob(f"*.dir/{house}/**/*.o")):
            if str(path.relative_to(self.build_folder)) not in self.targets:
                continue  # left by another commit
            stamp = path.stat().st_mtime_ns
            if self.digests.get(path, (0,))[0] != stamp:
                plain = self.build_folder / "plain.o"
                self.must("objcopy", "--strip-debug", path, plain)
                self.digests[path] = stamp, hashlib.sha256(plain.read_bytes()).digest()
            found[path] = self.digests[path][1]
        return found

    def write(self, path, text):
        (self.folder / path).write_text(text, encoding="utf-8")

    def kind(self, mutant, source):
        """Builds it. Returns "mutant", "same code", or "no code" if it does not compile."""
        self.write(mutant.path, mutant.apply(source))
        if not self.build(str(path.relative_to(self.build_folder)) for path in self.original):
            return "no code"
        return "same code" if self.objects() == self.original else "mutant"


def processors():
    return len(os.sched_getaffinity(0))
