# SPDX-License-Identifier: MIT
"""The tool that inserts the hooks, on a small tree of our own with the same places.

    insert_test.py TOOL
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))

from insertion_tests import InsertionTests

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


class Insert(InsertionTests, unittest.TestCase):
    TOOL = sys.argv.pop(1)
    TREE = TREE
    COPIED = SHARE + "incstack/adapter.c"
    ONE = SHARE + "oops/method.cpp"
    LAST = "make/hotspot/lib/CompileJvm.gmk"
    OLDER = (SHARE + "runtime/thread.hpp", "volatile uint64_t", "volatile uint32_t")
    UNEXPECTED = (
        (SHARE + "runtime/stackWatermark.hpp", "void before_unwind();", "void gone();"),
        (SHARE + "runtime/stackWatermark.hpp", "after_unwind();", "after_unwind();\n  void after_unwind();"),
        (SHARE + "oops/method.cpp", "deallocate_contents", "free_contents"),
        (SHARE + "opto/runtime.cpp", "oop_and_pc();\n", "oop_and_pc();\n  after_unwind(c);\n"),
        (SHARE + "runtime/safepoint.cpp", "is_safepoint_stub", "is_other_stub"))

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


if __name__ == "__main__":
    unittest.main()
