# SPDX-License-Identifier: MIT
"""The command `python3 -m incstack`."""
import os
import pathlib
import tempfile
import unittest

from common import run

PROGRAM = """
import sys
def grow(n):
    return [str(i) * 100 for i in range(n)]
kept = grow(1000)
print("argument", sys.argv[1], __name__)
sys.exit(3)
"""


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.program = os.path.join(self.folder.name, "program.py")
        pathlib.Path(self.program).write_text(PROGRAM)

    def heap(self, *arguments):
        return run("-m", "incstack", "heap", *arguments, cwd=self.folder.name)

    def test_a_program(self):
        done = self.heap("--check", "-o", "out.folded", self.program, "x")
        self.assertEqual((done.stdout, done.returncode), ("argument x __main__\n", 3), done.stderr)
        self.assertRegex(done.stderr, r"\d+ KiB +\d{4} .*grow.*\(program.py:4\)")
        self.assertRegex(done.stderr, r"check: traces=[1-9]\d* mismatches=0 lost=0 ")
        self.assertIn("wrote out.folded", done.stderr)
        lines = pathlib.Path(self.folder.name, "out.folded").read_text().splitlines()
        self.assertTrue([line for line in lines if line.startswith("<module>;grow")], lines)
        self.assertFalse([line for line in lines if "record" in line])

    def test_a_module(self):
        done = self.heap("-m", "program", "y")
        self.assertEqual((done.stdout, done.returncode), ("argument y __main__\n", 3), done.stderr)
        self.assertIn("program.py:4", done.stderr)

    def test_a_program_that_fails(self):
        pathlib.Path(self.program).write_text("def f():\n    1 / 0\nf()\n")
        done = self.heap(self.program)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ZeroDivisionError", done.stderr)
        self.assertIn("allocated ", done.stderr)

    def test_help_and_errors(self):
        self.assertIn("examples:", run("-m", "incstack", "--help").stdout)
        self.assertIn("--output FILE", self.heap("--help").stdout)
        for arguments, text in ((("missing.py",), "there is no file missing.py"),
                                (("-o", "x.txt", self.program), "use one of .html"), ((), "required")):
            done = self.heap(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
