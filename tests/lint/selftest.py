# SPDX-License-Identifier: MIT
"""Each lint rule, shown something that it must refuse and something that it must accept."""
import pathlib
import unittest

import circles
import documents
import layers
import link_order
import numbered
import picture
import poll
import sources
import symbols
import vector

NM = """lib.a[a.c.o]:
incstack_one T 0 10
malloc U
incstack_two U
_Unwind_GetIP w
lib.a[rule.c.o]:
memcpy U
incstack_two T 0 10
incstack_one U
"""


class Symbols(unittest.TestCase):
    def rule(self, name, extra=""):
        return symbols.RULES[name](symbols.parse(NM + extra))

    def test_accepted(self):
        for rule in ("prefix", "undefined", "calls"):
            self.assertEqual(self.rule(rule), [])
        self.assertEqual(symbols.portable_errors(symbols.parse("lib.a[a.c.o]:\nmemcpy U\n")), [])

    def test_refused(self):
        self.assertEqual(len(self.rule("prefix", "helper T 0 10\n")), 1)
        self.assertEqual(len(self.rule("prefix", "table D 0 10\n")), 1)
        self.assertEqual(len(self.rule("undefined", "printf U\n")), 1)
        self.assertEqual(len(self.rule("undefined", "_Unwind_GetIP U\n")), 1)
        self.assertEqual(len(self.rule("undefined", "incstack_missing U\n")), 1)
        self.assertEqual(len(self.rule("portable")), 2)
        self.assertEqual(len(self.rule("calls", "lib.a[walk.c.o]:\nmemcpy U\n")), 1)


class Vector(unittest.TestCase):
    def test_vector(self):
        code = "{}:     file format elf64-x86-64\n   0:\tmovaps %xmm0,(%rdi)\n"
        self.assertEqual(len(vector.vector_errors(code.format("walk.c.o"))), 1)
        self.assertEqual(vector.vector_errors("walk.c.o:     file format x\n  0:\tret\n"), [])


class Poll(unittest.TestCase):
    def test_poll(self):
        code = "0000 <poll>:\n   0:\t{}\n   3:\ttest   %rax,%rax\n   6:\tjne    9 <poll+0x9>\n{}" \
            "   8:\tret\n"
        self.assertIsNone(poll.poll_error(code.format("mov    (%rdi),%rax", "")))
        self.assertIsNotNone(poll.poll_error(code.format("mfence", "")))
        self.assertIsNotNone(poll.poll_error(
            code.format("mov    (%rdi),%rax", "   7:\tmov    (%rdi),%rax\n")))
        self.assertIsNotNone(poll.poll_error(code.format("mov    (%rdi),%rax",
                                                         "   7:\tpush   %rbp\n")))
        self.assertIsNotNone(poll.poll_error("nothing"))


class Sources(unittest.TestCase):
    def test_function_lengths(self):
        text = "/* c */\nint f(int a,\n\tint b)\n{\n\tif (a) {\n\t}\n}\n\nstruct s {\n\tint x;\n};\n"
        self.assertEqual(list(sources.function_lengths(text)), [(2, 6)])
        long = "int f(void)\n{\n" + "\tx();\n" * 78 + "}\n"
        self.assertEqual(list(sources.function_lengths(long)), [(1, 81)])

    def test_spdx(self):
        self.assertIsNotNone(sources.spdx_error("int x;\n"))
        self.assertIsNone(sources.spdx_error("/* SPDX-License-Identifier: MIT\n"))

    def test_dialect(self):
        self.assertEqual(len(list(sources.dialect_errors("profiler/recorder/x.c", "if (p == NULL)\n__atomic_load_n(p, 0);"))), 2)
        self.assertEqual(list(sources.dialect_errors("profiler/recorder/x.c", "if (!p || (q = f()) != NULL)\natomic_load(p);")), [])
        self.assertEqual(list(sources.dialect_errors("tests/x.c", "p == NULL")), [])

    def test_opening(self):
        for text in ("/* SPDX-License-Identifier: MIT */\nint f(void); /* one two three */\n",
                     "# SPDX-License-Identifier: MIT\nimport one, two, three\n", "int x;\n"):
            self.assertIsNotNone(sources.opening_error(text))
        for text in ("/* SPDX-License-Identifier: MIT\n *\n * Walks a stack.\n */\n",
                     "// SPDX-License-Identifier: MIT\n//\n// Walks a stack.\nint x;\n",
                     '#!/usr/bin/python3\n# SPDX-License-Identifier: MIT\n"""Walks a stack."""\n'):
            self.assertIsNone(sources.opening_error(text))


class Layers(unittest.TestCase):
    TEXTS = {"trace/rule.c": '#include "rule.h"\n', "trace/rule.h": "", "trace/walk.c": "",
             "trace/shared.h": "int incstack__shared(void);", "trace/step.h": "",
             "interpose/preload.h": "",
             "tracefile/format.h": "", "tracefile/notes.h": "", "tracefile/states.h": "",
             "profile/analysis.h": "", "profile/files.h": "", "profile/nodes.h": "", "profile/reduce.h": "",
             "profile/timeline.h": "", "profile/delta.h": "", "profile/filter.h": "", "profile/curve.h": "",
             "native/base.c": '#include "trace/shared.h"\n', "native/image.h": "", "native/frame_pointer.h": "",
             "safepoint/wait.h": ""}

    def errors(self, symbols=(), **texts):
        texts = {**self.TEXTS, **{name.replace("_", "/", 1) + ".c": text
                                  for name, text in texts.items()}}
        arrows = layers.include_arrows(texts)
        for arrow, why in layers.call_arrows(symbols).items():
            arrows[arrow] |= why
        return layers.errors_of(arrows, texts)[:-len(layers.EXCEPTIONS)]

    def calls(self, caller, callee, name):
        return self.errors([(caller, name, "U"), (callee, name, "T")])

    def test_accepted(self):
        self.assertEqual(self.errors(), [])
        self.assertEqual(self.calls("trace/walk.c", "trace/rule.c", "incstack__rule"), [])
        self.assertEqual(self.calls("native/base.c", "trace/rule.c", "incstack_stack_sample"), [])
        self.assertEqual(self.calls("native/base.c", "trace/rule.c", "incstack__shared"), [])
        self.assertEqual(self.calls("trace/rule.c", "interpose/malloc.c", "malloc"), [])

    def test_refused(self):
        self.assertEqual(len(self.calls("trace/rule.c", "trace/walk.c", "incstack__walk")), 1)
        self.assertEqual(len(self.calls("trace/rule.c", "trace/walk.c", "incstack_stack_sample")), 1)
        self.assertEqual(len(self.calls("native/base.c", "trace/rule.c", "incstack__rule")), 1)
        self.assertEqual(len(self.errors(native_base='#include "trace/rule.h"')), 1)
        self.assertEqual(len(self.errors(trace_signals='#include "safepoint/wait.h"')), 1)
        self.assertEqual(len(list(layers.unplaced(["trace/more.c", "other/more.c"]))), 2)

    def test_outside(self):
        text = '#include <incstack/heap.h>\n#include "own.h"\nincstack_sample();\n'
        self.assertEqual(list(layers.outside_errors("user.c", text, self.TEXTS)), [])
        for inside in ('#include "trace/rule.h"', "incstack__shared();"):
            self.assertEqual(len(list(layers.outside_errors("user.c", inside, self.TEXTS))), 1)


class Circles(unittest.TestCase):
    TEXTS = {"high.c": '#include "high.h"\n#include "low.h"\n', "high.h": "", "low.c": "", "low.h": ""}
    CALLS = [("high.c.o", "low_go", "U"), ("low.c.o", "low_go", "T"), ("high.c.o", "high_go", "T")]

    def circle(self, *calls, **texts):
        texts = {**self.TEXTS, **{name + ".c": text for name, text in texts.items()}}
        return circles.circle_of([*circles.include_needs(texts),
                                  *circles.call_needs([*self.CALLS, *calls])])

    def test_accepted(self):
        self.assertEqual(self.circle(("low.c.o", "malloc", "U")), [])
        self.assertEqual(self.circle(low='#include "low.h"\n#include "other.h"\n'), [])

    def test_refused(self):
        self.assertEqual(len(self.circle(("low.c.o", "high_go", "U"))), 3)
        self.assertEqual(len(self.circle(low='#include "high.h"\n')), 3)


class Documents(unittest.TestCase):
    def errors(self, name, text):
        return documents.errors_of(pathlib.Path("."), name, text)

    def test_accepted(self):
        for text in ("[a](README.md) and [b](https://x.org/src/no.c)", "`src/trace/*.c`, `docs/`",
                     "build/release/tests/test_x", "tests/unit/trace/test_NAME.c", "/tmp/perf-PID.map"):
            self.assertEqual(self.errors("README.md", text), [])
        self.assertEqual(self.errors("src/trace/walk.c", 'f("src/no.c"); /* README.md */'), [])
        self.assertEqual(self.errors("docs/a.md", "[b](../README.md) and invariants.md"), [])

    def test_refused(self):
        for text in ("[a](NONE.md)", "`src/no_*.c`", "src/no.c", "see docs/no.md", "/home/me/x"):
            self.assertEqual(len(set(self.errors("README.md", text))), 1, text)
        self.assertEqual(len(self.errors("src/trace/walk.c", "/* src/no.c */")), 1)
        self.assertEqual(len(self.errors("tests/unit/a.py", "# see src/no.c")), 1)
        self.assertEqual(len(self.errors("docs/a.md", "../../outside.md")), 1)

    def test_names(self):
        known = {"a.h": "int incstack_x_get(void);", "b.md": "`incstack_x_get`, `incstack_x`"}
        self.assertEqual(list(documents.unknown_names(known)), [])
        known["b.md"] = "`incstack_y`, INCSTACK_NO"
        self.assertEqual(len(list(documents.unknown_names(known))), 2)


class Picture(unittest.TestCase):
    TEXT = "## Layers\n\n```\n  tool/  -> base/ trace/  the tool\n  trace/ -> base/  walks\n  base/  errors\n```\n"
    ARROWS = {("tool", "base"), ("tool", "trace"), ("trace", "base")}

    def errors(self, arrows, folders):
        return picture.errors_of(picture.picture_of(self.TEXT), arrows, folders, folders)

    def test_accepted(self):
        self.assertEqual(picture.picture_of(self.TEXT), {"tool": {"base", "trace"}, "trace": {"base"}, "base": set()})
        self.assertEqual(self.errors(self.ARROWS, {"tool", "trace", "base"}), [])

    def test_refused(self):
        folders = {"tool", "trace", "base"}
        self.assertEqual(len(self.errors(self.ARROWS | {("base", "tool")}, folders)), 1)
        self.assertEqual(len(self.errors(self.ARROWS - {("trace", "base")}, folders)), 1)
        self.assertEqual(len(self.errors(self.ARROWS, folders | {"heap"})), 1)
        self.assertEqual(len(self.errors(self.ARROWS, folders - {"base"})), 1)
        upwards = picture.picture_of(self.TEXT.replace("base/  errors", "base/ -> trace/  errors"))
        self.assertEqual(len(picture.errors_of(upwards, self.ARROWS | {("base", "trace")}, folders, folders)), 1)


class Numbered(unittest.TestCase):
    def test_decisions(self):
        good = "### D1 (2026-11-20): One\n\nText\n\n### D2 (2026-11-21): Two\n"
        self.assertEqual(numbered.decisions_of(good), (["D1", "D2"], []))
        for bad in ("### D2 (2026-11-20): Again\n", "### D3: Undated\n", "### Not numbered\n"):
            self.assertEqual(len(numbered.decisions_of(good + bad)[1]), 1, bad)

    def test_invariants(self):
        row = "| I1 | Something. | |\n"
        self.assertEqual(numbered.invariants_of(row), (["I1"], []))
        self.assertEqual(len(numbered.invariants_of(row + row)[1]), 1)

    def test_cited(self):
        numbers = {"D1", "I1"}
        for text in ("/* as before (I1, D1) */", "/* the L1 cache, and the L2\n * caches */", 'f("D7");'):
            self.assertEqual(numbered.missing("src/trace/walk.c", text, numbers), [])
        self.assertEqual(len(numbered.missing("src/trace/walk.c", "/* (I2) */", numbers)), 1)
        self.assertEqual(len(numbered.missing("docs/a.md", "D2 and L1", numbers)), 2)


class LinkOrder(unittest.TestCase):
    def test_order(self):
        self.assertIsNone(link_order.order_error(["libgcc_s.so.1", "libunwind.so.8"]))
        self.assertIsNotNone(link_order.order_error(["libunwind.so.8", "libgcc_s.so.1"]))
        self.assertIsNotNone(link_order.order_error(["libunwind.so.8", "libc.so.6"]))


if __name__ == "__main__":
    unittest.main()
