# SPDX-License-Identifier: MIT
"""multiprocessing by fork and by spawn, subprocess, and os.fork in a thread."""
import multiprocessing
import os
import subprocess
import sys
import threading

scale = int(sys.argv[1])


def square(number):
    return len(str(number ** 50))


def fork_and_wait():
    process = os.fork()
    if process == 0:
        os._exit(len([str(i) for i in range(100)]) - 100)
    os.waitpid(process, 0)


if __name__ == "__main__":
    total = 0
    with multiprocessing.get_context("fork").Pool(3) as pool:
        total += sum(pool.map(square, range(scale * 50)))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        total += sum(pool.map(square, range(scale * 10)))
    for _ in range(scale):
        total += len(subprocess.run(["echo", "x" * 100], capture_output=True, check=True).stdout)
    threads = [threading.Thread(target=fork_and_wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(total)
