# SPDX-License-Identifier: MIT
"""What build-jvm refuses, with tools of our own instead of the system's: one clear line each, and
nothing that a later run would take for done.

    build_jvm_test.py TOOL
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(sys.argv.pop(1)).resolve()

TOOLS = {
    "uname": "echo ${MACHINE:-x86_64}",
    "dpkg-query": 'for a; do :; done; [ "$a" = "$MISSING" ] || printf "install ok installed"',
    "df": "echo Avail; echo ${FREE:-9000}M",
    "apt-get": 'case "$*" in *indextargets*) [ -n "$MIRROR" ] && echo "$MIRROR" ;; '
               '*update*) echo "${UPDATE:-fine}" ;; *) echo "no such package"; exit 1 ;; esac; exit 0',
    "jdk/bin/javac": "echo javac ${JAVAC:-17.0.1}",
}


class BuildJvm(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="incstack-build-jvm-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in TOOLS.items():
            path = self.folder / "tools" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            path.chmod(0o755)

    def run_tool(self, *options, **environment):
        tools = self.folder / "tools"
        return subprocess.run(
            [TOOL, "--dir", self.folder / "place", *options], capture_output=True, text=True,
            check=False, timeout=60,
            env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}",
                 "INCSTACK_BOOT_JDK": str(tools / "jdk"),
                 "MIRROR": "bookworm main http://mirror", **environment})

    def refuse(self, *options, **environment):
        """Runs the tool. Returns the last line that it says."""
        place = self.folder / "place"
        result = self.run_tool(*options, **environment)
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        lines = result.stderr.splitlines()
        self.assertTrue(all(line.startswith("build-jvm: ") for line in lines), result.stderr)
        self.assertLessEqual(len(lines), 2, result.stderr)  # the step that it was at, and why not
        for done in ("downloaded", "jdk", "home-release"):
            self.assertFalse((place / done).exists(), done)
        return lines[-1].removeprefix("build-jvm: ")

    def test_options(self):
        self.assertIn("unknown option --what; the options are --dir", self.refuse("--what"))
        self.assertIn("release or fastdebug, not quick", self.refuse("--level", "quick"))
        self.assertEqual(self.refuse("--jobs"), "--jobs needs a value")
        self.assertEqual(self.refuse("--level", ""), "--level needs a value")
        self.assertIn("must be a number, not 0", self.refuse("--jobs", "0"))
        self.assertIn("outside of", self.refuse("--dir", TOOL.parent / "x"))
        (self.folder / "file").write_text("", encoding="utf-8")
        self.assertIn("cannot be made", self.refuse("--dir", self.folder / "file" / "x"))

    def test_help(self):
        result = self.run_tool("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("build-jvm [--dir DIR]", result.stdout)
        self.assertNotIn("set -", result.stdout)

    def test_another_clone_has_built_there(self):
        place = self.folder / "place"
        cache = place / "library-release" / "CMakeCache.txt"
        for folder in ("jdk", "library-release"):
            (place / folder).mkdir(parents=True)
        (place / "downloaded").touch()
        cmake = self.folder / "tools" / "cmake"
        cmake.write_text(f"#!/bin/sh\n[ ! -f {cache} ] || echo the cache is there\nexit 1\n",
                         encoding="utf-8")
        cmake.chmod(0o755)
        log = place / "library-release.log"
        for home, says in ((TOOL.parents[2], "the cache is there\n"), ("/elsewhere", "")):
            cache.parent.mkdir(exist_ok=True)
            cache.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\n", encoding="utf-8")
            self.assertIn("cmake failed; see", self.run_tool().stderr)
            self.assertEqual(log.read_text(encoding="utf-8"), says)

    def test_a_missing_package_is_named(self):
        self.assertEqual(self.refuse(MISSING="ninja-build"),
                         "missing; install them: apt-get install ninja-build")

    def test_another_machine_or_jdk(self):
        self.assertIn("x86-64, not riscv64", self.refuse(MACHINE="riscv64"))
        self.assertIn("is no JDK 17; set INCSTACK_BOOT_JDK", self.refuse(JAVAC="21.0.2"))
        self.assertIn("is no JDK 17; set INCSTACK_BOOT_JDK",
                      self.refuse(INCSTACK_BOOT_JDK="/no/such"))

    def test_no_room(self):
        self.assertRegex(self.refuse(FREE="100"), "place has 100 MiB free; 3500 are needed")

    def test_no_archive(self):
        self.assertIn("set INCSTACK_DEBIAN_MIRROR", self.refuse(MIRROR=""))
        self.assertIn("cannot be reached; see", self.refuse(UPDATE="E: no route"))
        self.assertRegex(self.refuse(), "^apt-get failed; see .*/apt-source.log")


if __name__ == "__main__":
    unittest.main()
