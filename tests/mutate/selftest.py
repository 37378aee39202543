# SPDX-License-Identifier: MIT
"""Tests that each operator changes a small file as it should, that it changes only code, and that
the list of equivalents names mutants that exist."""
import collections
import pathlib
import unittest

import main
from operators import mutants_of
from reach import Reach, coverage
from suite import Order

HERE = pathlib.Path(__file__).resolve().parent


def changes(body, operator=None, head="int f(int a, int b)"):
    source = f"{head}\n{{\n{body}\n}}\n"
    return [m.after for m in mutants_of("src/x.c", source)
            if operator in (None, m.operator) and (operator or m.operator != "return")]


class Operators(unittest.TestCase):
    def test_negate(self):
        self.assertEqual(changes("if (a && b) a = 1;", "negate"), ["if (!(a && b)) a = 1;"])
        self.assertEqual(changes("while (g(a)) a = 1;", "negate"), ["while (!(g(a))) a = 1;"])
        self.assertEqual(changes("if (a == b) a = 1;", "negate"), [])
        self.assertEqual(changes("if (a == b) a = 1;", "equal"), ["if (a != b) a = 1;"])

    def test_bound(self):
        self.assertEqual(changes("return a < b;", "bound"), ["return a <= b;"])
        self.assertEqual(changes("return a >= b->c << 2;", "bound"), ["return a > b->c << 2;"])

    def test_logic(self):
        self.assertEqual(changes("return a && b || c;", "logic"),
                         ["return a || b || c;", "return a && b && c;"])

    def test_sum(self):
        self.assertEqual(changes("return a + b[-1] - *c;", "sum"),
                         ["return a - b[-1] - *c;", "return a + b[-1] + *c;"])
        self.assertEqual(changes("a += 2; b--;", "sum"), ["a -= 2; b--;", "a += 2; b++;"])
        self.assertEqual(changes("for (;; a++) ;", "sum"), [])

    def test_order(self):
        self.assertEqual(changes("return __atomic_load_n(&a, __ATOMIC_ACQUIRE);", "order"),
                         ["return __atomic_load_n(&a, __ATOMIC_RELAXED);"])
        self.assertEqual(changes("return load(&a, memory_order_seq_cst);", "order"),
                         ["return load(&a, memory_order_relaxed);"])
        self.assertEqual(changes("return load(&a, memory_order_relaxed);", "order"), [])

    def test_arms(self):
        self.assertEqual(changes("return a < b ? f(a, 1) : b;", "arms"),
                         ["return a < b ? b : f(a, 1);"])
        self.assertEqual(changes("f(a ? b ? 1 : 2 : 3, a);", "arms"),
                         ["f(a ? 3 : b ? 1 : 2, a);", "f(a ? b ? 2 : 1 : 3, a);"])

    def test_drop(self):
        for statement in ("g(a);", "a = g(b);", "*a = 1;", "a->b++;", "(void)g(a);", "break;",
                          "return g(a) + 1;", "a.b[g(1)] = (struct s){1, 2};"):
            self.assertIn(";", changes(statement, "drop"), statement)
        for statement in ("int c = 1;", "struct s c = {1};", "size_t c = g(a);", "type *c = g(a);",
                          "for (int c = 0; c < a; c++) {}", "out:", "type *c, *d;"):
            self.assertEqual(changes(statement, "drop"), [], statement)
        self.assertEqual(changes("if (a) g(a); else g(b);", "drop"),
                         ["if (a) ; else g(b);", "if (a) g(a); else ;"])

    def test_return(self):
        self.assertEqual(changes("g(a);\ng(b);", "return"), ["{ return 0;"])
        self.assertEqual(changes("g(a);\ng(b);", "return", "static void f(int a)"), ["{ return;"])
        self.assertEqual(changes("if (a) {\nbreak;\n}", "return"), ["{ return 0;"])
        self.assertEqual(changes("return 1;", "return"), [])

    def test_no_code(self):
        for text in ('/* a < b && g(); */', '// if (a) g();', 'g("a < b", \'<\')[0 /* - */];',
                     '#if A < B\n#define C(a) if (a) { \\\n g(a + 1); }\n#endif',
                     '"an \\" escape < b";'):
            self.assertEqual([c for c in changes(text) if c != ";"], [], text)
        self.assertEqual(mutants_of("src/x.h", "struct s { int a; };\nint g(int a);\n"
                                    "static const int t[] = {1 + 2, 3 - 4};\n"), [])

    def test_place(self):
        source = "int f(int a)\n{\n\treturn a +\n\t       1;\n}\n"
        mutant = [m for m in mutants_of("src/x.c", source) if m.operator == "sum"][0]
        self.assertEqual((mutant.line, mutant.before), (3, "return a +"))
        self.assertEqual(mutant.apply(source), source.replace("+", "-"))


class Choice(unittest.TestCase):
    def test_seed(self):
        texts = {"src/x.c": "int f(int a)\n{\n" + "\treturn a + 1;\n" * 20 + "}\n"}
        lines = [[m.line for m in main.choose(texts, seed)] for seed in (1, 1, 2)]
        self.assertEqual(lines[0], lines[1])
        self.assertNotEqual(lines[0], lines[2])

    def test_equivalents(self):
        self.assertEqual(main.equivalents("# x\nsrc/a.c: b: c => d\n\tReason.\n"),
                         {("src/a.c", "b: c => d")})
        text = main.EQUIVALENTS.read_text(encoding="utf-8")
        for path, change in main.equivalents(text):
            source = (main.ROOT / path).read_text(encoding="utf-8")
            self.assertIn(change, [m.change for m in mutants_of(path, source)], path)
        heads = [line for line in text.splitlines() if line.startswith(("src/", "profiler/"))]
        for head in heads:
            self.assertIn(f"{head}\n\t", text, "a reason follows")

    def test_order(self):
        names = ["unit.test_other", "unit.test_walk", "preload.stacks_x"]
        order = Order(dict.fromkeys(names, 1.0))
        self.assertEqual(order.sort(names, "src/trace/walk.c"), [names[1], names[2], names[0]])
        order.note(names[0], "src/trace/walk.c")
        self.assertEqual(order.sort(names, "src/trace/walk.c")[0], names[0])
        self.assertEqual(order.sort(names, "src/trace/life_cycle.c")[0], names[0])
        self.assertEqual(order.sort(names, "profiler/tracefile/cct.c")[0], names[2])

    def test_reach(self):
        reach = Reach({}, {"src/x.c": {"3": ["one"], "4": ["two"]}})
        source = "int f(int a)\n{\n\tg(a,\n\t  1 + a);\n\tg(2);\n}\n"
        found = {m.operator: reach.of(m, source) for m in mutants_of("src/x.c", source)}
        self.assertEqual(found["sum"], {"two"})
        first, second = [reach.of(m, source) for m in mutants_of("src/x.c", source)
                         if m.operator == "drop"]
        self.assertEqual((first, second), ({"one", "two"}, set()))

    def test_coverage(self):
        files, root = collections.defaultdict(coverage.File), pathlib.Path("/r")
        coverage.add_lines(files, ["SF:/r/build/x/../../src/a/x.c", "DA:3,1", "DA:4,0",
                                   "end_of_record", "SF:/r/tests/y.c", "DA:1,1",
                                   "SF:/r/src/a/x.c", "DA:4,2"], root)
        coverage.add_branches(files, {"data": [{"files": [{
            "filename": "/r/src/a/x.c", "branches": [[3, 5, 3, 9, 2, 0, 0, 0, 4],
                                                     [9, 5, 9, 9, 2, 0, 1, 0, 4],
                                                     [3, 5, 3, 9, 1, 0, 0, 0, 4],
                                                     [5, 5, 5, 9, 0, 0, 0, 0, 4],
                                                     [6, 5, 6, 9, 0, 0, 0, 0, 4]]}]}]}, root,
                              lambda path: "\n" * 4 + "if (FAULT(A) && (b ||\nc))\nd();\n")
        self.assertEqual(list(files), ["src/a/x.c"])
        self.assertEqual(dict(files["src/a/x.c"].lines), {3: 1, 4: 2})
        self.assertEqual(coverage.covered(files["src/a/x.c"].branches), (1, 2))


if __name__ == "__main__":
    unittest.main()
