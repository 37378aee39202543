# SPDX-License-Identifier: MIT
"""supervise.py SECONDS SCRIPT: runs a script of bash and exits with its status, or with 124 after
SECONDS. Every process that the script leaves behind becomes a child of this process, whatever it
does to its session, its parent and its environment. This process ends when the script or the
driver ends. Before that it ends all these children."""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def parents():
    """The parent of each process."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            found[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    return found


def descendants():
    found, above = [], {os.getpid()}
    by_parent = parents()
    while above:
        above = {process for process, parent in by_parent.items() if parent in above}
        found += above
    return found


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def end_all():
    for _ in range(100):
        left = descendants()
        if not left:
            return
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)
        reap()


def on_end(*_):
    end_all()
    os._exit(124)


def main():
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, on_end)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    child = subprocess.Popen(["bash", "-c", sys.argv[2]])
    try:
        status = child.wait(float(sys.argv[1]))
    except subprocess.TimeoutExpired:
        status = 124
    end_all()
    return status if status >= 0 else 128 - status


sys.exit(main())
