# SPDX-License-Identifier: MIT
"""Several agents, or one that must choose: which agent samples, which threads it samples, what it keeps if
its memory is used up, and how it names its file."""
import glob
import os
import re
import shutil
import subprocess

from harness import (WORK_MS, Setting, folded, one_start_one_result, present, require, run, stats)


def only_one_runs():
    """The only thread that computes is sampled at each tick, with and without those that wait. Threads of the
    JVM that only seem to run take no turn."""
    for options, all_wanted in (("samples=1", True), ("samples=3", True), ("waiting", False),
                                ("waiting,samples=1", False)):
        lines = run(f"interval=1ms,file=o.folded,stats,threads,{options}", "deep", "20", WORK_MS)
        seen, stacks = stats(lines), folded("o.folded")
        ticks, missed, wanted = map(int, re.search(r" ticks=(\d+) missed=(\d+) wanted=(\d+) ",
                                                   lines[-2]).groups())
        require(wanted == seen["traces"] + seen["lost"], lines)
        require(f"; {seen['lost']} lost: " in lines[-3] if seen["lost"] else " lost" not in lines[-3],
                lines)
        present(ticks > 40, lines)
        found = sum(n for s, n in stacks.items() if s.startswith("main;"))
        present(found >= ticks * 0.95, found, lines)
        if all_wanted:
            present(wanted >= (ticks + missed) * 0.95, lines)


def memory_limit():
    """A profile that needs more than it may: light contexts become [smaller contexts], and a line says so."""
    lines = run("interval=100us,file=m.folded,lines,memory=8m,stats,depth=2048", "varied", WORK_MS)
    seen, stacks = stats(lines), folded("m.folded")
    require(sum(stacks.values()) == seen["traces"], lines)
    pruned = sum(n for s, n in stacks.items() if s.endswith("[smaller contexts]"))
    present(pruned > 0, lines)
    require(f"; {pruned} of them are below [smaller contexts], because the profile reached its limit (memory=)"
            in lines[-3], pruned, lines)


def pipes():
    """A pipe gets the profile if it is read. Without a reader the JVM ends all the same."""
    os.mkfifo("o.folded")
    lines = run("interval=1ms,file=o.folded", "work", WORK_MS)
    require(any("cannot write" in line and "Broken pipe" in line for line in lines), lines)
    with open("read.folded", "wb") as to:
        reader = subprocess.Popen(["cat", "o.folded"], stdout=to)
        run("interval=1ms,file=o.folded", "work", WORK_MS)
        require(reader.wait(60) == 0, "the reader")
    require(sum(folded("read.folded").values()) > 0, "an empty profile")
    # A name in /dev leads to an open file, and is not replaced by another one.
    with open("all.folded", "wb") as to:
        to.write(b"before 1\n")
        to.flush()
        run(f"interval=1ms,format=folded,file=/dev/fd/{to.fileno()}", "work", WORK_MS,
            keep=[to.fileno()])
        require(os.fstat(to.fileno()).st_nlink == 1, "replaced")
    require(folded("all.folded")["before"] == 1 and len(folded("all.folded")) > 1, "all.folded")
    if os.geteuid() == 0:
        os.chown("o.folded", 65534, 65534)
        lines = run("interval=1ms,file=o.folded", "work", WORK_MS)
        require(any("it is a link or a pipe of another user" in line for line in lines), lines)
        os.symlink("/dev/null", "l.folded")
        os.chown("l.folded", 65534, 65534, follow_symlinks=False)
        lines = run("interval=1ms,file=l.folded", "work", WORK_MS)
        require(any("it is a link or a pipe of another user" in line for line in lines), lines)


def copied():
    shutil.copy(Setting.agent, "other.so")
    return os.path.abspath("other.so")


def several_agents():
    """The agent twice, or two copies of it: the first one samples, and the others say why they do not."""
    flags = [f"-agentpath:{Setting.agent}=interval=1ms,file=first.folded"]
    lines = run("interval=1ms,file=second.folded", "work", WORK_MS, flags=flags)
    require(lines[0] == "incstack: the agent is given twice; only the options of the first one are used",
            lines)
    one_start_one_result(lines[1:], "first.folded")
    flags = [f"-agentpath:{copied()}=interval=1ms,file=first.folded"]
    lines = run("interval=1ms,file=second.folded", "work", WORK_MS, flags=flags)
    require(lines[0] == f"incstack: another copy of the agent samples this JVM already: {copied()}; "
            "this one samples nothing", lines)
    one_start_one_result(lines[1:], "first.folded")
    require(not os.path.exists("second.folded"), os.listdir())
    lines = run(None, "attach", copied(), "interval=1ms,file=a.folded", WORK_MS, "stop", "1",
                "interval=1ms,file=b.folded", WORK_MS, flags=[f"-agentpath:{Setting.agent}=nonsense"])
    require(len([s for s in lines if "samples written" in s]) == 2, lines)
    lines = run("interval=1ms,file=c.folded", "attach", copied(), "interval=1ms,file=d.folded", "1",
                "stop", "1")
    text = "\n".join(lines)
    require("another copy of the agent samples this JVM already" in text and "not sampling" in text
            and "written to c.folded" in text and not os.path.exists("d.folded"), lines)


def names_by_format():
    for option, ending in (("folded", "folded"), ("pprof", "pb.gz"), ("html", "html")):
        lines = run(f"interval=1ms,format={option}", "work", WORK_MS)
        found = glob.glob("incstack-*")
        require(len(found) == 1 and re.fullmatch(rf"incstack-\d+\.{ending}", found[0]), found)
        one_start_one_result(lines, found[0])
        os.remove(found[0])
