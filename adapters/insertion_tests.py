# SPDX-License-Identifier: MIT
"""What the tests of all insertion tools have in common. A test of a tool derives from InsertionTests and
unittest.TestCase, and has the fields that stand there.
"""
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile


class InsertionTests:
    TOOL = ""        # the insertion tool
    TREE = {}        # a small tree of our own with the same places: texts by path
    COPIED = ""      # where adapter.c is copied to
    ONE = ""         # a file with insertions
    LAST = ""        # the one that is written last
    OLDER = ()       # path, old, new: a change of an insertion; the file has one
    UNEXPECTED = ()  # path, old, new: changes of the tree that must be refused

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="incstack-insert-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.tree = self.folder / "tree"
        for name, text in self.TREE.items():
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / name).write_text(text, encoding="utf-8")

    def run_tool(self, *arguments, room=resource.RLIM_INFINITY):
        return subprocess.run([sys.executable, "-B", self.TOOL, *map(str, arguments)],
                              capture_output=True, text=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))

    def insert(self, *arguments):
        result = self.run_tool(*arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def refuse(self, *arguments, room=resource.RLIM_INFINITY):
        """Runs the tool, which must change nothing and cannot write files larger than `room`. Returns
        its message, one line."""
        before = self.read()
        result = self.run_tool(*arguments, room=room)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertEqual(self.read(), before)
        return result.stderr

    def read(self):
        return {str(p.relative_to(self.tree)): p.read_text(encoding="utf-8")
                for p in self.tree.rglob("*") if p.is_file()}

    def edit(self, name, old, new):
        path = self.tree / name
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new), encoding="utf-8")

    def state(self):
        return self.insert("--state", self.tree).strip()

    def adapter(self, text="int adapter;\n"):
        """A file that the tool copies."""
        path = self.folder / "adapter.c"
        path.write_text(text, encoding="utf-8")
        return path

    def test_undo_leaves_what_was_there(self):
        self.assertEqual(self.state(), "original")
        self.insert(self.tree, self.adapter())
        self.assertEqual(self.state(), "inserted")
        self.assertEqual(self.read()[self.COPIED], "int adapter;\n")
        for _ in range(2):
            self.insert("--undo", self.tree)
            self.assertEqual(self.read(), self.TREE)

    def test_again_changes_nothing(self):
        self.insert(self.tree, self.adapter())
        times = {p: p.stat().st_mtime_ns for p in self.tree.rglob("*") if p.is_file()}
        self.insert(self.tree, self.adapter())
        self.assertEqual(times, {p: p.stat().st_mtime_ns for p in times})
        self.insert(self.tree, self.adapter("int changed;\n"))
        self.assertEqual(self.read()[self.COPIED], "int changed;\n")

    def test_a_half_inserted_tree_is_refused_and_can_be_undone(self):
        self.insert(self.tree)
        (self.tree / self.ONE).write_text(self.TREE[self.ONE], encoding="utf-8")
        self.assertEqual(self.state(), "half")
        self.assertIn("--undo", self.refuse(self.tree))
        self.insert("--undo", self.tree)
        self.assertEqual(self.read(), self.TREE)

    def test_an_older_insertion_is_refused_and_can_be_undone(self):
        self.insert(self.tree)
        self.edit(*self.OLDER)
        said = self.refuse(self.tree)
        self.assertIn("another version", said)
        self.assertIn(f"`insert --undo {self.tree}`", said)
        self.assertEqual(said.strip().count("\n"), 0)
        self.insert("--undo", self.tree)
        self.assertEqual(self.read(), self.TREE)

    def test_an_unexpected_place_is_refused(self):
        for name, old, new in self.UNEXPECTED:
            with self.subTest(name=name, new=new):
                self.edit(name, old, new)
                self.assertIn(name, self.refuse(self.tree))
                self.edit(name, new, old)
        self.insert(self.tree)

    def test_a_hook_that_was_edited_is_refused(self):
        self.insert(self.tree)
        self.edit(*self.OLDER)
        self.assertEqual(self.state(), "half")
        self.edit(self.OLDER[0], "/* }incstack */", "")
        self.assertIn(self.OLDER[0] + ":", self.refuse("--undo", self.tree))

    def test_without_room_nothing_is_changed(self):
        large = self.adapter("x" * 9000)
        self.assertRegex(self.refuse(self.tree, large, room=8192), "adapter.c: File too large")
        self.edit(self.LAST, self.TREE[self.LAST], self.TREE[self.LAST] + "#" * 9000)
        self.assertRegex(self.refuse(self.tree, room=8192), self.LAST + ": .*nothing was changed")
        self.insert(self.tree, large)
        self.assertRegex(self.refuse("--undo", self.tree, room=8192), "nothing was changed")
        self.insert("--undo", self.tree)
        self.assertEqual(self.state(), "original")

    def test_no_tree_is_refused(self):
        self.assertIn("source tree", self.refuse(self.folder / "nothing"))
        self.assertIn("usage", self.refuse())
        self.assertIn("usage", self.refuse("--redo", self.tree))
