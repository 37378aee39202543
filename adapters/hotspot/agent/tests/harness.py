# SPDX-License-Identifier: MIT
"""What the tests of the agent share: how programs are run with it, and what they say."""
import contextlib
import os
import re
import subprocess
import time

STATS = re.compile(r"^incstack: traces=(\d+) crosschecked=(\d+) mismatches=(\d+) lost=(\d+) "
                   r"truncated=(\d+) returns=(\d+) stale=(\d+) mode=([a-z-]+) "
                   r"depth_mean=([\d.]+) popped_mean=([\d.]+)$")
# What was lost, with its reasons.
LOSSES = r"(; \d+ lost: [a-zJVM ]+ \(\d+\)(, [a-zJVM ]+ \(\d+\))*)?"
LIMIT = 120
WORK_MS = object()  # in a program's arguments


class Setting:
    java = agent = classes = incstack = preload = None
    work_ms = 200


class NotSeenYet(AssertionError):
    """Something was not sampled, which more work may change."""


def require(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(x) for x in what)[:2000])


def present(condition, *what):
    if not condition:
        raise NotSeenYet(" ".join(str(x) for x in what)[:2000])


def run(options, *program, flags=(), environment=None, keep=()):
    """The lines of the standard error; the program must have done its work."""
    program = [str(Setting.work_ms) if x is WORK_MS else x for x in program]
    agent = [] if options is None else [f"-agentpath:{Setting.agent}={options}"]
    result = subprocess.run(
        [Setting.java, "-Xmx256m", "-XX:+UseSerialGC", *flags, *agent, "-cp", Setting.classes,
         "Scenarios", *program],
        capture_output=True, text=True, timeout=LIMIT, check=False,
        env={**os.environ, **(environment or {})}, pass_fds=keep)
    require(result.returncode == 0, result.returncode, result.stdout, result.stderr)
    require(result.stdout.endswith("done\n"), result.stdout, result.stderr)
    return result.stderr.splitlines()


def numbers_of(found):
    names = "traces crosschecked mismatches lost truncated returns stale".split()
    numbers = dict(zip(names, map(int, found.groups()[:7])))
    return {**numbers, "mode": found[8], "depth": float(found[9]), "popped": float(found[10])}


def stats(lines):
    found = STATS.match(lines[-1])
    require(found, lines)
    return numbers_of(found)


def stats_of_parts(lines):
    """Both lines of each part, in one dictionary."""
    ticks = [re.match(r"incstack: ticks=\d+ missed=\d+ wanted=(\d+)", s) for s in lines]
    wanted = [int(found[1]) for found in ticks if found]
    last = [numbers_of(found) for found in map(STATS.match, lines) if found]
    require(len(wanted) == len(last), lines)
    return [{**numbers, "wanted": w} for numbers, w in zip(last, wanted)]


def folded(path):
    """{stack: samples} of a profile in any format that can be read."""
    if path.endswith((".folded", ".collapsed")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
    else:
        out = path + ".converted.folded"
        subprocess.run([Setting.incstack, "convert", path, out], check=True,
                       capture_output=True)
        with open(out, encoding="utf-8") as file:
            text = file.read()
    stacks = {}
    for line in text.splitlines():
        stack, weight = line.rsplit(" ", 1)
        stacks[stack] = stacks.get(stack, 0) + int(weight)
    return stacks


def one_start_one_result(lines, path):
    require(len(lines) == 2, lines)
    require(lines[0].startswith("incstack: sampling every ") and lines[0].endswith(" to " + path),
            lines)
    require(re.fullmatch(r"incstack: \d+ samples written to " + re.escape(path) + LOSSES, lines[1]),
            lines)


@contextlib.contextmanager
def running(*prefix):
    """A program that runs for longer than any test. It has begun, so its JVM takes commands: SIGQUIT,
    with which jcmd announces them, would end a JVM that has just started."""
    with subprocess.Popen([*prefix, Setting.java, "-XX:+UseSerialGC", "-cp", Setting.classes,
                           "Scenarios", "begin", "3600000"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as java:
        try:
            require(java.stdout.readline() == "begun\n", "it does not begin")
            yield java
        finally:
            java.kill()


def await_that(condition):
    end = time.monotonic() + LIMIT
    while not condition():
        require(time.monotonic() < end, "it does not happen")
        time.sleep(0.01)


def load_by_jcmd(java, options, *prefix):
    tool = os.path.join(os.path.dirname(Setting.java), "jcmd")
    return subprocess.run([*prefix, tool, str(java.pid), "JVMTI.agent_load", Setting.agent,
                           f'"{options}"'], capture_output=True, text=True, timeout=LIMIT,
                          check=False)
