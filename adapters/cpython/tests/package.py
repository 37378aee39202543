# SPDX-License-Identifier: MIT
"""The package: what it records and writes, and what it says when it is used wrongly."""
import gzip
import json
import os
import pathlib
import tempfile
import unittest

import incstack


def keep(n):
    return [bytearray(5000) for _ in range(n)]


def waste(n):
    for _ in range(n):
        bytearray(3000)


def line_of(function):
    return [line for line in incstack.lines() if line.function == function]


class Package(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def record(self, name, **options):
        with incstack.heap(self.path(name), **options):
            kept = keep(200)
            waste(300)
        del kept
        return pathlib.Path(self.path(name)).read_bytes()

    def test_lines(self):
        self.record("out.folded")
        (kept,) = [line for line in line_of("keep.<locals>.<listcomp>") + line_of("keep") if line.bytes > 500000]
        self.assertEqual(kept.file, __file__)
        self.assertTrue(200 * 5000 < kept.live_bytes < 300 * 5000, kept)
        self.assertEqual(kept.peak_bytes, kept.live_bytes)
        wasted = max(line_of("waste"), key=lambda line: line.bytes)
        self.assertTrue(300 * 3000 < wasted.bytes < 310 * 4000, wasted)
        self.assertEqual(wasted.live_bytes, 0)
        self.assertGreaterEqual(wasted.temporary, 300)

    def test_folded(self):
        text = self.record("out.folded", kind="live").decode()
        sums = dict(line.rsplit(" ", 1) for line in text.splitlines())
        (kept,) = [int(v) for k, v in sums.items() if ";Package.record;keep" in k and int(v) > 500000]
        self.assertGreater(kept, 200 * 5000)
        self.assertFalse([k for k, v in sums.items() if k.endswith(";waste") and v != "0"])

    def test_formats(self):
        self.assertIn(b"<html", self.record("out.html")[:300])
        self.assertIn(b"Package.record", gzip.decompress(self.record("out.pb.gz")))
        self.assertIn("profiles", json.loads(self.record("out.speedscope.json")))
        self.assertIn("threads", json.loads(self.record("out.firefox.json")))

    def test_snapshot(self):
        incstack.start()
        kept = keep(10)
        incstack.snapshot(self.path("first.folded"))
        kept += keep(100)
        incstack.snapshot(self.path("second.folded"))
        incstack.stop()
        first, second = (sum(int(line.rsplit(" ", 1)[1]) for line in pathlib.Path(self.path(name)).read_text()
                             .splitlines() if ";keep" in line) for name in ("first.folded", "second.folded"))
        self.assertTrue(50000 < first < 100000 and second - first > 500000, (first, second))

    def test_a_block_that_fails_is_written(self):
        with self.assertRaises(KeyError), incstack.heap(self.path("out.folded")):
            keep(10)
            raise KeyError
        self.assertTrue(os.path.getsize(self.path("out.folded")))

    def test_a_child_writes_nothing(self):
        with incstack.heap(self.path("out.folded")):
            child = os.fork()
            if child == 0:
                try:
                    with incstack.heap(self.path("child.folded")):
                        pass
                except RuntimeError:  # the recording of the parent goes on here
                    os._exit(0)
                os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_names_that_are_not_ascii(self):
        space = {}
        exec(compile("def größe_\u4e2d():\n    return bytearray(100000)", "d\u00e4tei.py", "exec"), space)
        with incstack.heap(self.path("out.folded")):
            space["größe_\u4e2d"]()
        self.assertIn("größe_\u4e2d", pathlib.Path(self.path("out.folded")).read_text(encoding="utf-8"))
        self.assertEqual(line_of("größe_\u4e2d")[0].file, "d\u00e4tei.py")

    def test_wrong_use(self):
        with self.assertRaisesRegex(RuntimeError, "call incstack.start"):
            incstack.stop()
        with self.assertRaisesRegex(RuntimeError, "call incstack.start"):
            incstack.snapshot(self.path("out.html"))
        with self.assertRaisesRegex(ValueError, r"use one of \.html"):
            incstack.write(self.path("out.txt"))
        with self.assertRaisesRegex(ValueError, "use one of allocated"):
            incstack.write(self.path("out.html"), kind="size")
        with self.assertRaises(FileNotFoundError):
            incstack.write(self.path("missing/out.html"))
        with self.assertRaises(OSError):
            incstack.write("/dev/full.html" if os.path.exists("/dev/full.html") else self.full())
        incstack.start()
        with self.assertRaisesRegex(RuntimeError, "call incstack.stop"):
            incstack.start()
        incstack.stop()

    def full(self):
        os.symlink("/dev/full", self.path("full.html"))
        return self.path("full.html")


if __name__ == "__main__":
    unittest.main()
