# SPDX-License-Identifier: MIT
"""Tests gdb's bt through patched frames. test_unwinders stops in the same frames without and with
barriers. The two backtraces must be equal apart from the lines of thunks. Then gdb steps a return
through the trampoline; bt must be complete at each instruction.

Usage: backtrace.py <gdb> <test_unwinders>. The status is 77 if gdb cannot trace."""
import itertools
import re
import subprocess
import sys

LINE = re.compile(r"^#\d+ +(?:0x[0-9a-f]+ in )?([\w.]+) ?\(")
# gdb takes the names of code without a known language for Ada's: __ becomes a dot.
THUNK = re.compile(r"incstack(__|\.)thunk")
STEPS = 50  # more than the instructions from a thunk to its resume address
COMMANDS = (["set pagination off", "set confirm off", "break by_glibc", "run", "echo @1\\n", "bt",
             "continue", "echo @2\\n", "bt", "delete", "break incstack__thunk_entry", "continue"]
            + ["echo @3\\n", "bt", "nexti"] * STEPS + ["echo @4\\n", "kill"])


def functions(text):
    return [m.group(1) for m in map(LINE.match, text.splitlines()) if m]


def without_thunks(names):
    return [n for n in names if not THUNK.match(n)]


def errors(output):
    parts = re.split(r"^@(\d)$", output, flags=re.M)
    stops = list(zip(parts[1::2], parts[2::2]))
    plain = functions(stops[0][1])
    patched = functions(stops[1][1])
    if len(plain) < 24 or plain[-1] != "main":
        yield f"no complete bt without barriers: {plain}"
    if len(patched) < len(plain) + 6:
        yield "nothing was patched"
    if without_thunks(patched) != plain:
        yield f"bt through barriers is {patched}"
    if "corrupt" in output or "Backtrace stopped" in output:
        yield "gdb stopped a backtrace"
    steps = [functions(text) for mark, text in stops if mark == "3"]
    trip = lambda names: names and THUNK.match(names[0])  # of one return
    inside = list(itertools.takewhile(trip, steps))
    if len(steps) != STEPS or len(inside) < 30:
        yield f"only {len(inside)} steps in the trampoline"
    for names in inside:
        if without_thunks(names) != without_thunks(inside[0]) or names[-1] != "main":
            yield f"a step's bt is {names}"


def main():
    gdb, program = sys.argv[1:]
    command = [gdb, "-nx", "-batch"] + [word for c in COMMANDS for word in ("-ex", c)]
    run = subprocess.run(["env", "CK_FORK=no"] + command + [program], capture_output=True,
                         text=True, check=False)
    if "@1" not in run.stdout:
        print(run.stdout + run.stderr)
        sys.exit(77)
    found = list(errors(run.stdout))
    if found:
        sys.exit("\n".join(found[:5]))


if __name__ == "__main__":
    main()
