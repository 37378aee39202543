# SPDX-License-Identifier: MIT
"""Our functions in Python's allocators and those of tracemalloc, in each order of begin and end."""
import threading
import tracemalloc
import unittest

import incstack


def allocate(n=100):
    return [str(i) * 2 for i in range(n)]


def calls_of(work):
    before = incstack.counts()["calls"]
    work()
    return incstack.counts()["calls"] - before


class Allocators(unittest.TestCase):
    def tearDown(self):
        tracemalloc.stop()
        if incstack._incstack.is_on():
            incstack.stop()

    def assert_works(self):
        self.assertGreater(calls_of(allocate), 100)

    def assert_tracemalloc_works(self):
        kept = bytearray(1000000)
        self.assertGreaterEqual(tracemalloc.get_traced_memory()[0], 1000000)
        del kept

    def test_tracemalloc_within(self):
        incstack.start()
        tracemalloc.start()
        self.assert_works()
        self.assert_tracemalloc_works()
        tracemalloc.stop()
        self.assert_works()
        self.assertTrue(incstack._incstack.stop())

    def test_tracemalloc_around(self):
        tracemalloc.start()
        incstack.start()
        self.assert_works()
        incstack.stop()
        self.assert_tracemalloc_works()

    def test_tracemalloc_ends_first(self):
        tracemalloc.start()
        incstack.start()
        self.assert_works()
        self.assert_tracemalloc_works()
        tracemalloc.stop()
        self.assert_works()
        self.assertTrue(incstack._incstack.stop())

    def test_tracemalloc_ends_last(self):
        incstack.start()
        tracemalloc.start()
        incstack.stop()
        self.assert_tracemalloc_works()
        tracemalloc.stop()
        self.assertEqual(calls_of(allocate), 0)
        incstack.start()
        self.assert_works()

    def test_again_below_tracemalloc(self):
        incstack.start()
        tracemalloc.start()
        for _ in range(3):
            incstack.stop()
            self.assert_tracemalloc_works()
            incstack.start()
            self.assert_works()
        tracemalloc.stop()
        self.assert_works()

    def test_many_orders_while_threads_allocate(self):
        done = threading.Event()

        def work():
            while not done.is_set():
                bytearray(2000)
                allocate(5)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for i in range(30):
                (tracemalloc.start if i % 3 else incstack.start)()
                (tracemalloc.start if i % 3 == 0 else incstack.start)()
                self.assert_works()
                (tracemalloc.stop if i % 2 else incstack.stop)()
                (tracemalloc.stop if i % 2 == 0 else incstack.stop)()
        finally:
            done.set()
            for thread in threads:
                thread.join()

    def test_all_that_is_live_is_known(self):
        incstack.start()
        kept = [bytearray(10000) for _ in range(100)]
        live = incstack.counts()["live_bytes"]
        self.assertGreaterEqual(live, 1000000)
        for block in kept:
            block.extend(bytes(10000))
        self.assertGreaterEqual(incstack.counts()["live_bytes"], live + 1000000)
        del kept, block
        counts = incstack.stop()
        self.assertLess(counts["live_bytes"], 100000)
        self.assertGreaterEqual(counts["peak_bytes"], live + 1000000)


if __name__ == "__main__":
    unittest.main()
