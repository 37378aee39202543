# SPDX-License-Identifier: MIT
"""The tool that inserts the hooks, on a small tree of our own with the same places.

    insert_test.py TOOL
"""
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)

SHARE = "src/hotspot/share/"
TREE = {
    "make/conf/version-numbers.conf": "DEFAULT_VERSION_FEATURE=17\n",
    "make/hotspot/lib/CompileJvm.gmk": "JVM_LIBS += \\\n    #\n\nJVM_EXCLUDE_FILES += args.x\n",
    SHARE + "runtime/thread.hpp": "class T {\n  Mechanism::ThreadData* poll_data() { return 0; }\n};\n",
    SHARE + "runtime/stackWatermark.hpp":
        "class W {\n  void before_unwind();\n  void after_unwind();\n};\n",
    SHARE + "runtime/stackWatermarkSet.cpp":
        "int StackWatermarkSet::lowest_watermark(J* j) {\n  for (;;) {\n    w = MIN2(w, c);\n  }\n}\n",
    SHARE + "opto/runtime.cpp":
        "X(a, OptoRuntime::handle_exception_C_helper(J* c))\n  c->clear_exception_oop_and_pc();\n"
        "JRT_END\n\nint rethrow() {\n  after_unwind(c);\n}\n",
    SHARE + "runtime/safepoint.cpp":
        "#include \"a.hpp\"\n#include \"b/c.hpp\"\n"
        "void ThreadSafepointState::handle_polling_page_exception() {\n"
        "  check(cb->is_safepoint_stub(), \"\");\n  go();\n}\n",
    SHARE + "runtime/safepointMechanism.cpp":
        "#include \"a.hpp\"\n#include \"b/c.hpp\"\n#include \"b/d.hpp\"\n"
        "void SafepointMechanism::update_poll_values(J* thread) {\n"
        "  bool armed = global_poll() || thread->is();\n"
        "  thread->set_polling_page(poll_page);\n"
        "  if (!armed && (global_poll() || thread->is())) {\n  }\n}\n"
        "void SafepointMechanism::process(J* thread) {\n  bool need_rechecking;\n"
        "  do {\n    Synchronize::block(thread);\n"
        "    again = has() && thread->handshake_state()->process_by_self();\n"
        "  } while (again);\n  update_poll_values(thread);\n"
        "  OrderAccess::cross_modify_fence();\n}\n",
    SHARE + "prims/jvmtiExtensions.cpp":
        "#include \"b/c.hpp\"\nvoid JvmtiExtensions::register_extensions() {\n"
        "  _ext_functions->append(&f);\n}\n",
    SHARE + "oops/instanceKlass.cpp":
        "#include \"b/c.hpp\"\nvoid InstanceKlass::unload_class(K* ik) {\n  go();\n}\n",
    SHARE + "oops/method.cpp":
        "#include \"b/c.hpp\"\nvoid Method::deallocate_contents(D* d) {\n  go();\n}\n",
}


class Insert(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="incstack-insert-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.tree = self.folder / "tree"
        for name, text in TREE.items():
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / name).write_text(text, encoding="utf-8")

    def run_tool(self, *arguments, room=resource.RLIM_INFINITY):
        return subprocess.run([sys.executable, "-B", TOOL, *map(str, arguments)],
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

    def test_each_place_gets_its_hook(self):
        self.insert(self.tree)
        now = self.read()
        for name in TREE:
            if not name.endswith(".conf"):
                self.assertIn("incstack", now[name], name)
        mechanism = now[SHARE + "runtime/safepointMechanism.cpp"]
        self.assertEqual(mechanism.count("IncStack::pending(thread) ||"), 2)
        self.assertRegex(mechanism, r"armed = /\* incstack\{ \*/ IncStack::pending")
        self.assertRegex(mechanism, r"= IncStack::Armed;\n    \}\n/\* \}incstack \*/\n  thread->set_pol")
        self.assertRegex(mechanism, r"continue;\n    \}\n/\* \}incstack \*/\n  if \(!armed && \(/\* inc")
        self.assertRegex(mechanism, r"again\);\n/\* incstack\{ \*/\n +IncStack::at_poll")
        self.assertRegex(mechanism, r"IncStack::is_alone\(thread\);\n/\* \}incstack \*/\n +bool need")
        self.assertRegex(mechanism, r"alone = false;\n/\* \}incstack \*/\n +Synchronize::block")
        self.assertRegex(mechanism, r"has\(\) && /\* incstack\{ \*/ IncStack::clear\(&incstack_alone\) "
                                    r"&& /\* \}incstack \*/ thread->handshake_state")
        self.assertRegex(mechanism, r"if \(!incstack_alone\) /\* \}incstack \*/ OrderAccess::cross")
        self.assertRegex(mechanism, r'a.hpp"\n/\* incstack\{ \*/\n#include "incstack')
        self.assertRegex(now[SHARE + "runtime/stackWatermark.hpp"],
                         r"virtual /\* \}incstack \*/ void before_unwind")
        self.assertRegex(now["make/hotspot/lib/CompileJvm.gmk"],
                         r"libincstack_jvm.a\n# \}incstack\nJVM_EXCLUDE_FILES")

    def test_undo_leaves_what_was_there(self):
        self.assertEqual(self.state(), "original")
        glue = self.folder / "glue.cpp"
        glue.write_text("int glue;\n", encoding="utf-8")
        self.insert(self.tree, glue)
        self.assertEqual(self.state(), "inserted")
        self.assertEqual(self.read()[SHARE + "incstack/glue.cpp"], "int glue;\n")
        self.insert("--undo", self.tree)
        self.assertEqual(self.read(), TREE)
        self.insert("--undo", self.tree)
        self.assertEqual(self.read(), TREE)

    def test_again_changes_nothing(self):
        glue = self.folder / "glue.cpp"
        glue.write_text("int glue;\n", encoding="utf-8")
        self.insert(self.tree, glue)
        times = {p: p.stat().st_mtime_ns for p in self.tree.rglob("*") if p.is_file()}
        self.insert(self.tree, glue)
        self.assertEqual(times, {p: p.stat().st_mtime_ns for p in times})
        glue.write_text("int glue2;\n", encoding="utf-8")
        self.insert(self.tree, glue)
        self.assertEqual(self.read()[SHARE + "incstack/glue.cpp"], "int glue2;\n")

    def test_a_half_inserted_tree_is_refused_and_can_be_undone(self):
        self.insert(self.tree)
        name = SHARE + "oops/method.cpp"
        (self.tree / name).write_text(TREE[name], encoding="utf-8")
        self.assertEqual(self.state(), "half")
        self.assertIn("--undo", self.refuse(self.tree))
        self.insert("--undo", self.tree)
        self.assertEqual(self.read(), TREE)

    def test_an_older_insertion_is_refused_and_can_be_undone(self):
        self.insert(self.tree)
        self.edit(SHARE + "runtime/thread.hpp", "volatile uint64_t", "volatile uint32_t")
        said = self.refuse(self.tree)
        self.assertIn("another version", said)
        self.assertIn(f"`insert --undo {self.tree}`", said)
        self.assertEqual(said.strip().count("\n"), 0)
        self.insert("--undo", self.tree)
        self.assertEqual(self.read(), TREE)

    def test_an_unexpected_place_is_refused(self):
        for name, old, new in (
                (SHARE + "runtime/stackWatermark.hpp", "void before_unwind();", "void gone();"),
                (SHARE + "runtime/stackWatermark.hpp", "after_unwind();",
                 "after_unwind();\n  void after_unwind();"),
                (SHARE + "oops/method.cpp", "deallocate_contents", "free_contents"),
                (SHARE + "opto/runtime.cpp", "oop_and_pc();\n", "oop_and_pc();\n  after_unwind(c);\n"),
                (SHARE + "runtime/safepoint.cpp", "is_safepoint_stub", "is_other_stub")):
            with self.subTest(name=name, new=new):
                self.edit(name, old, new)
                self.assertIn(name, self.refuse(self.tree))
                self.edit(name, new, old)
        self.insert(self.tree)

    def test_a_hook_that_was_edited_is_refused(self):
        self.insert(self.tree)
        self.edit(SHARE + "oops/method.cpp", "method_freed", "method_lost")
        self.assertEqual(self.state(), "half")
        self.edit(SHARE + "oops/method.cpp", "/* }incstack */", "")
        self.assertIn(SHARE + "oops/method.cpp:", self.refuse("--undo", self.tree))

    def test_without_room_nothing_is_changed(self):
        large = self.folder / "glue.cpp"
        large.write_text("x" * 9000, encoding="utf-8")
        self.assertRegex(self.refuse(self.tree, large, room=8192), "glue.cpp: File too large")
        name = "make/hotspot/lib/CompileJvm.gmk"  # is written last
        (self.tree / name).write_text(TREE[name] + "#" * 9000, encoding="utf-8")
        self.assertRegex(self.refuse(self.tree, room=8192), "CompileJvm.gmk: .*nothing was changed")
        self.insert(self.tree, large)
        self.assertRegex(self.refuse("--undo", self.tree, room=8192), "nothing was changed")
        self.insert("--undo", self.tree)
        self.assertEqual(self.state(), "original")

    def test_another_version_is_refused(self):
        name = "make/conf/version-numbers.conf"
        self.edit(name, "17", "21")
        self.assertIn(f"{name}: this is JDK 21;", self.refuse(self.tree))
        (self.tree / name).write_text("", encoding="utf-8")
        self.assertIn(f"{name}: this is JDK unknown;", self.refuse(self.tree))
        (self.tree / name).unlink()
        older = self.tree / "make/autoconf/version-numbers"
        older.parent.mkdir()
        older.write_text("DEFAULT_VERSION_FEATURE=16\n", encoding="utf-8")
        self.assertIn("make/autoconf/version-numbers: this is JDK 16;", self.refuse(self.tree))

    def test_no_tree_is_refused(self):
        self.assertIn("JDK source tree", self.refuse(self.folder / "nothing"))
        self.assertIn("usage", self.refuse())
        self.assertIn("usage", self.refuse("--redo", self.tree))


if __name__ == "__main__":
    unittest.main()
