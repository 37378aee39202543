# SPDX-License-Identifier: MIT
"""Each stack of a recording is that of Python, in all that programs do to stacks."""
import asyncio
import functools
import os
import sys
import threading
import types
import unittest

import incstack
from common import checked, expected


def allocate(n=50):
    return [str(i) * 2 for i in range(n)]


class Truth(unittest.TestCase):
    def assert_stack(self):
        seen, right = incstack.stack(), expected()
        self.assertEqual(seen, right)

    def test_functions(self):
        with checked(self):
            for depth in (1, 3, 40, 5, 300, 2):
                self.go_down(depth)

    def go_down(self, depth):
        allocate(3)
        if depth:
            self.go_down(depth - 1)
        else:
            self.assert_stack()
        allocate(3)

    def test_generators(self):
        def inner(n):
            for i in range(n):
                allocate(2)
                yield i
                self.assert_stack()

        def outer(n):
            yield from inner(n)
            allocate(2)

        with checked(self):
            started = [outer(5) for _ in range(20)]
            for _ in range(5):
                for generator in started:
                    next(generator, None)
                    allocate(1)
            for generator in started[::2]:
                generator.close()
            with self.assertRaises(KeyError):
                started[1].throw(KeyError)

    def test_a_generator_that_goes_on_elsewhere(self):
        def numbers():
            while True:
                allocate(2)
                yield incstack.stack(), expected()

        def here(g):
            return next(g)

        def there(g):
            return [next(g)][0]

        with checked(self):
            g = numbers()
            for step in (here, there, here, there):
                seen, right = step(g)
                self.assertEqual(seen, right)

    def test_coroutines(self):
        async def leaf(n):
            allocate(3)
            await asyncio.sleep(0)
            self.assert_stack()
            if n % 3 == 0:
                raise ValueError(n)

        async def middle(n):
            try:
                await leaf(n)
            except ValueError:
                allocate(2)

        async def main():
            await asyncio.gather(*(middle(n) for n in range(50)))
            async for _ in aiterate():
                allocate(1)

        async def aiterate():
            for _ in range(5):
                await asyncio.sleep(0)
                yield allocate(2)

        with checked(self):
            asyncio.run(main())

    def test_c_functions_that_call_back(self):
        @functools.lru_cache(maxsize=None)
        def cached(n):
            return cached(n - 1) + len(allocate(2)) if n else 0

        class Value:
            def __init__(self, n):
                self.n = n
                allocate(1)

            def __lt__(self, other):
                allocate(1)
                return self.n < other.n

            def __del__(self):
                allocate(1)

        with checked(self):
            cached(60)
            values = sorted((Value(i * 7 % 31) for i in range(31)), key=lambda v: (allocate(1), v)[1])
            list(map(lambda v: functools.reduce(lambda a, b: (allocate(1), a + b)[1], range(5)), values))
            del values

    def test_exceptions_through_c(self):
        def fail(n):
            allocate(1)
            if n > 20:
                raise KeyError(n)
            return max([n], key=lambda x: fail(x + 1))

        with checked(self):
            for _ in range(20):
                with self.assertRaises(KeyError):
                    fail(0)
                allocate(1)

    def test_threads(self):
        def work(depth):
            if depth:
                work(depth - 1)
            allocate(20)

        with checked(self):
            for _ in range(3):
                threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()

    def test_trace_and_profile_functions(self):
        def tracer(frame, event, argument):
            allocate(1)
            return tracer

        for switch in (sys.settrace, sys.setprofile):
            before = sys.gettrace()
            with checked(self):
                switch(tracer)
                try:
                    self.go_down(10)
                finally:
                    switch(before if switch is sys.settrace else None)

    @unittest.skipUnless(hasattr(sys, "monitoring"), "this Python has no sys.monitoring")
    def test_monitoring(self):
        tool, events = 3, sys.monitoring.events
        sys.monitoring.use_tool_id(tool, "test")
        for event in (events.PY_START, events.PY_RETURN, events.LINE, events.CALL):
            sys.monitoring.register_callback(tool, event, lambda *a: allocate(1) and None)
        sys.monitoring.set_events(tool, events.PY_START | events.PY_RETURN | events.LINE | events.CALL)
        try:
            with checked(self):
                self.go_down(10)
        finally:
            sys.monitoring.set_events(tool, 0)
            sys.monitoring.free_tool_id(tool)

    def test_code_objects_that_die(self):
        places = []
        with checked(self):
            for i in range(1000):
                made = compile(f"def function_{i}(see):\n    return see()", "made", "exec").co_consts[0]
                function = types.FunctionType(made, {})
                places.append(id(made))
                del made
                seen = function(incstack._incstack.stack)
                self.assertEqual(seen[0][0], f"function_{i}")
                del function, seen
        self.assertLess(len(set(places)), 500)  # others have taken their addresses

    def test_deep_recursion(self):
        def down(n):
            if n:
                down(n - 1)
            else:
                self.assertGreater(len(incstack.stack()), 4000)

        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(40000)
        try:
            incstack.start()
            down(4000)
            incstack.stop()
        finally:
            sys.setrecursionlimit(limit)

    def test_fork(self):
        with checked(self):
            child = os.fork()
            if child == 0:
                allocate(100)
                self.go_down(30)
                counts = incstack.stop()
                os._exit(counts["mismatches"] != 0)
            self.go_down(30)
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_subinterpreters(self):
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            try:
                import _interpreters as interpreters
            except ImportError:
                self.skipTest("this Python has no module for subinterpreters")
        with checked(self):
            number = interpreters.create()
            run = getattr(interpreters, "run_string", None) or interpreters.exec
            run(number, "def f(n):\n    return f(n - 1) if n else [str(i) * 2 for i in range(50)]\nf(20)")
            allocate(5)
            interpreters.destroy(number)


if __name__ == "__main__":
    unittest.main()
