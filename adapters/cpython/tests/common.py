# SPDX-License-Identifier: MIT
"""What the tests of the package share."""
import contextlib
import os
import subprocess
import sys

import incstack


@contextlib.contextmanager
def checked(case):
    """Records the block in check mode: each stack must be right, and none may be lost."""
    incstack.start(check=True)
    try:
        yield
    finally:
        counts = incstack.stop()
    case.assertGreater(counts["compared"], 0)
    case.assertEqual((counts["mismatches"], counts["lost"]), (0, 0), counts)


def expected():
    """The caller's stack as Python itself tells it, in the form of incstack.stack()."""
    frame, out = sys._getframe(1), []
    while frame:
        out.append((frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return out


def run(*arguments, **options):
    """Runs Python in a process of its own."""
    return subprocess.run([sys.executable, "-B", *arguments], capture_output=True, text=True, env=os.environ,
                          check=False, **options)
