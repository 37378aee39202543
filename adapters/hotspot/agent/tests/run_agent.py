# SPDX-License-Identifier: MIT
"""The agent in a stock JVM: run_agent.py <java> <agent> <classes> <incstack> <preload> <test>...

Each test is a function below. On a busy machine the agent gets little of the processor, and what is
looked for may not have been sampled yet. Then the test is tried again, with twice the work.
"""
import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import zipfile

from harness import (LIMIT, LOSSES, STATS, WORK_MS, NotSeenYet, Setting, folded, load_by_jcmd,
                     one_start_one_result, present, require, run, running, stats, stats_of_parts)
from planted import planted_links
from priority import realtime
from several import memory_limit, names_by_format, only_one_runs, pipes, several_agents


# ---- modes and formats ------------------------------------------------------------------

def modes():
    for mode, technique in (("partial", "GetStackTrace"), ("jvmti", "GetAllStackTraces")):
        lines = run(f"interval=1ms,mode={mode},file=m.folded,stats", "work", WORK_MS)
        require(technique in lines[0] and f"mode {mode}" in lines[0], lines)
        seen, stacks = stats(lines), folded("m.folded")
        require(seen["mode"] == mode, seen)
        require(seen["traces"] == sum(stacks.values()), seen, stacks)
        require(seen["truncated"] == seen["returns"] == seen["stale"] == 0, seen)
        deep = [s for s in stacks if s.count("Scenarios.deep;") == 101]
        present(deep, seen)
        require(all(re.match(r"java\.lang\.Thread\.run;.*\.run;Scenarios\.lambda", s)
                    for s in deep), deep)
        present(any("Scenarios.busy" in s and "deep" not in s for s in stacks), seen)
        require(not any("0x" in s for s in stacks), stacks)  # of hidden classes
        require(not any("waitForReferencePendingList" in s for s in stacks), stacks)
        require(not any("[" in s for s in stacks), stacks)
        # The thread was perhaps sampled when it was about to wait. If those that wait were sampled, more
        # samples would show it.
        waits = sum(n for s, n in stacks.items() if "Object.wait" in s)
        present(waits * 10 <= seen["traces"], waits, stacks)
        present(10 < seen["depth"] < 110, seen)


def formats():
    for name in ("f.html", "f.folded", "f.collapsed", "f.pb.gz", "f.speedscope.json",
                 "f.firefox.json", "f.json"):
        lines = run(f"interval=1ms,file={name}", "work", WORK_MS)
        one_start_one_result(lines, name)
        if name == "f.html":
            with open(name, encoding="utf-8") as file:
                present("Scenarios.busy" in file.read(), name)
        elif name == "f.json":
            os.rename(name, "g.firefox.json")
            present(any("Scenarios.busy" in s for s in folded("g.firefox.json")), name)
        else:
            present(any("Scenarios.busy" in s for s in folded(name)), name)
    run("interval=1ms,file=noending,format=collapsed", "work", WORK_MS)
    os.rename("noending", "noending.folded")
    present(any("Scenarios.busy" in s for s in folded("noending.folded")))
    require(not glob.glob("*.part"), os.listdir())


def lines_of_source():
    run("interval=1ms,file=l.speedscope.json", "work", WORK_MS)
    with open("l.speedscope.json", encoding="utf-8") as file:
        text = file.read()
    found = re.findall(r'"name":"Scenarios\.busy","file":"Scenarios\.java","line":(\d+)', text)
    with open(os.environ["SCENARIOS_SOURCE"], encoding="utf-8") as file:
        source = file.read().splitlines()
    begin = next(i for i, line in enumerate(source, 1) if "static long busy" in line)
    present(found, "no line")
    require(all(begin < int(line) <= begin + 8 for line in found), found, begin)
    run("interval=1ms,lines=no,file=n.speedscope.json", "work", WORK_MS)
    with open("n.speedscope.json", encoding="utf-8") as file:
        require('"line"' not in file.read())


def thread_names():
    for mode in ("partial", "jvmti"):
        run(f"interval=1ms,mode={mode},file=t.folded,threads,waiting", "work", WORK_MS)
        stacks = folded("t.folded")
        require(all(s.startswith("worker A;java.lang.Thread.run;") for s in stacks
                    if "Scenarios.busy" in s and "deep" not in s), stacks)
        present(any(s.startswith("worker B;") and "deep" in s for s in stacks), stacks)
        present(any(s.startswith("idle \u00e4;") and "Object.wait" in s for s in stacks), stacks)
        require(not any("incstack sampler" in s for s in stacks), stacks)


def deep_stacks():
    lines = run("interval=1ms,file=d.folded,depth=50,stats", "deep", "500", WORK_MS)
    seen, stacks = stats(lines), folded("d.folded")
    cut = {s: n for s, n in stacks.items() if s.startswith("[truncated];")}
    require(sum(cut.values()) == seen["truncated"], seen, stacks)
    present(cut, seen)
    require(all(len(s.split(";")) == 51 for s in cut), stacks)
    lines = run("interval=1ms,file=d.folded,stats", "deep", "500", WORK_MS)
    require(stats(lines)["truncated"] == 0, lines)
    present(max(len(s.split(";")) for s in folded("d.folded")) == 504, lines)


def check():
    for mode in ("partial", "jvmti"):
        seen = stats(run(f"interval=1ms,mode={mode},waiting,check,stats,file=c.folded",
                         "work", WORK_MS, flags=["-Xcheck:jni"]))
        require(seen["mismatches"] == 0, seen)
        present(seen["crosschecked"] > 0, seen)


# ---- files, parts, durations ----------------------------------------------------------------

def names_and_parts():
    run("interval=1ms,file=n-%p-%t.folded", "work", WORK_MS)
    require([f for f in os.listdir() if re.fullmatch(r"n-\d+-\d{8}-\d{6}\.folded", f)],
            os.listdir())
    lines = run("interval=1ms,split=50ms,file=s.folded", "work", WORK_MS)
    parts = sorted(glob.glob("s-*.folded"))
    present(len(parts) >= 3 and "s-1.folded" in parts, parts)
    written = [int(m[1]) for m in (re.match(r"incstack: (\d+) samples written", s) for s in lines)
               if m]
    require(sum(sum(folded(p).values()) for p in parts) == sum(written), parts, lines)
    lines = run("interval=1ms,split=50ms,file=w.folded,waiting,check,stats", "work", WORK_MS)
    counted = stats_of_parts(lines)
    present(sum(part["crosschecked"] for part in counted) > len(counted) >= 3, counted)
    require(all(part["wanted"] == part["traces"] + part["lost"] for part in counted), counted)
    require(all(part["crosschecked"] <= part["traces"] for part in counted), counted)
    lines = run("interval=1ms,duration=20ms,file=u.folded", "work", WORK_MS)
    one_start_one_result(lines, "u.folded")


def files_that_cannot_be_written():
    os.mkdir("folder.html")
    for name, why in (("no/such/x.html", "No such file or directory"),
                      ("folder.html", "directory"), ("x" * 300 + ".html", "too long")):
        lines = run(f"interval=1ms,file={name}", "work", "1")
        require(len(lines) == 1 and lines[0].startswith(f"incstack: cannot write {name}: ")
                and why in lines[0] and lines[0].endswith("; nothing is sampled"), lines)
    lines = run("interval=1ms,format=html,file=/dev/full", "work", WORK_MS)
    require(lines[-1] == "incstack: cannot write /dev/full: No space left on device", lines)
    os.mkdir("gone")
    lines = run(None, "attach", Setting.agent, "interval=1ms,file=gone/x.html", "1", "status", "1")
    require(os.path.exists("gone/x.html"), lines)


# ---- processor time -------------------------------------------------------------------------

def processor_time():
    """processor_ms: the time of the program's threads, which have ended by then. It is most of the time
    of the process if nothing is compiled."""
    for split, parts in (("", 1), (",split=50ms", 4)):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        lines = run(f"interval=10ms,file=c.folded,stats{split}", "work", WORK_MS, flags=["-Xint"])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        found = [float(s.rpartition(" processor_ms=")[2]) for s in lines if " ticks=" in s]
        require(sum(found) < used, found, used)
        present(len(found) >= parts and sum(found) > used / 3, found, used)


# ---- what is refused ------------------------------------------------------------------------

def refusals():
    for options, part in (("intervall=1ms", "unknown option 'intervall'; known are interval"),
                          ("interval=1", "option interval is '1'"),
                          ("file=x.svg", "does not show the format"),
                          ("stop", "nothing to do for a command"),
                          ("mode=incremental", "use mode=partial"),
                          ("mode=partial-incremental", "use mode=partial")):
        lines = run(options, "work", "1")
        require(len(lines) == 1 and part in lines[0], options, lines)
    for option in ("memory=1m", "memory=lots", "depth=0", "samples=0", "threads=maybe", "mode=best",
                   "format=svg", "file=", "file=%x.html", "split=1us", "duration=", "check=2",
                   "\x1b[31m=1", "lines=\u202e", "x" * 9000, "file=" + "y" * 9000 + ".html"):
        lines = run(option, "work", "1")
        require(len(lines) == 1 and lines[0].isprintable() and len(lines[0]) < 400
                and lines[0].endswith("; nothing is sampled"), option, lines)
    require(not os.listdir(), os.listdir())


# ---- attach ---------------------------------------------------------------------------------

def attach():
    lines = run(None, "attach", Setting.agent,
                "stop", "1",
                "status", "1",
                "interval=1ms,file=a-%n.folded,stats", WORK_MS,
                "interval=1ms", "1",
                "dump", "1",
                "next", WORK_MS,
                "nonsense", "1",
                "status", "1",
                "stop", "1",
                "interval=1ms,file=b.folded,duration=1ms", WORK_MS,
                "status", "1")
    # A newer JVM warns at each attach until one succeeds.
    lines = [s for s in lines if not s.startswith("WARNING: ")]
    text = "\n".join(re.sub(r"(\d+ )(samples)|ticks=.*|traces=.*|" + LOSSES + "$", r"\2", s)
                     for s in lines)
    require("incstack: not sampling; start first\nincstack: not sampling\nincstack: sampling every"
            in text, lines)
    require("sampling already" in text and "incstack: sampling, part 2\n" in text, lines)
    require(re.search("unknown option 'nonsense'.*; sampling goes on as before\n", text), lines)
    require(text.count("samples written to a-1.folded") == 2, lines)
    require(text.count("samples written to a-2.folded") == 1, lines)
    require(text.count("samples written to b.folded") == 1, lines)
    require(lines[-1] == "incstack: not sampling", lines)
    for name in ("a-1.folded", "a-2.folded"):
        present(any("Scenarios.busy" in s for s in folded(name)), name)


def jcmd():
    """As a user would do it."""
    path = os.path.abspath("j.folded")
    with running() as java:
        result = load_by_jcmd(java, f"interval=1ms,duration=300ms,file={path}")
        require("return code: 0" in result.stdout, result.stdout, result.stderr)
        lines = [java.stderr.readline().rstrip("\n") for _ in range(2)]
        one_start_one_result(lines, path)
        present(any("Scenarios.busy" in s for s in folded(path)), lines)
        for options, why in (("nonsense", "unknown option"), ("stop", "not sampling"),
                             ("mode=incremental", "use mode=partial"),
                             ("file=/no/such/x.html", "No such file or directory")):
            result = load_by_jcmd(java, options)
            line = java.stderr.readline()
            require("return code: -1" in result.stdout and why in line, result.stdout, line)
        require(java.poll() is None, "it ended")


def other_users():
    """One user may not attach to the JVM of another one; root may, but the file is the user's."""
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        sys.exit(77)
    with running() as java:
        require("return code: 0" in load_by_jcmd(java, "duration=1ms,file=u.html").stdout)
        require(len([java.stderr.readline() for _ in range(2)]) == 2)
        result = load_by_jcmd(java, "file=/tmp/x.html", *nobody)
        require(result.returncode != 0 and "return code" not in result.stdout, result.stdout)
        result = load_by_jcmd(java, "status")
        require(java.stderr.readline() == "incstack: not sampling\n", "it sees nothing of that")
    os.mkdir("mine", mode=0o700)
    path = os.path.abspath("mine/x.html")
    with running(*nobody) as java:
        result = load_by_jcmd(java, f"file={path}")
        line = java.stderr.readline()
        require("return code: -1" in result.stdout, result.stdout, result.stderr)
        require(line == f"incstack: cannot write {path}: Permission denied; nothing is sampled\n",
                line)


def fuzz(seed="1", count="120"):
    lines = run(None, "fuzz", Setting.agent, seed, count)
    require(all(line.startswith("incstack: ") or "WARNING" in line for line in lines), lines)
    present(len([s for s in lines if "written to" in s]) > 3, lines)
    require(len([s for s in lines if "option" in s]) > 3, lines)


def fuzz_long():
    for seed in range(2, 6):
        for name in os.listdir():
            os.remove(name)
        fuzz(str(seed), "500")


# ---- hard programs --------------------------------------------------------------------------

def short_threads(count="2000"):
    for mode in ("partial", "jvmti"):
        lines = run(f"interval=500us,mode={mode},file=h.folded,threads,stats", "threads", count)
        require(sum(folded("h.folded").values()) == stats(lines)["traces"], lines)


def short_threads_long():
    short_threads("20000")


def unloading(count="64"):
    """Classes are unloaded while their methods are in the profile."""
    lines = run("interval=500us,file=u.folded,stats", "unload", count, Setting.agent, flags=["-Xcheck:jni"])
    lines = [s for s in lines if s.startswith("incstack:")]
    stacks = folded("u.folded")
    present(any("Scenarios$Loaded.run;Scenarios.deep" in s for s in stacks), stacks)
    require(not any("[" in s for s in stacks), [s for s in stacks if "[" in s])
    require(stats(lines)["traces"] == sum(stacks.values()), lines)


def unloading_long():
    unloading("1000")


def redefining():
    """Methods of an old version of their class have their names, too."""
    with zipfile.ZipFile("redefine.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF",
                     "Premain-Class: Scenarios\nCan-Redefine-Classes: true\n")
    run("interval=500us,file=r.folded", "redefine", "5", Setting.agent, flags=["-javaagent:redefine.jar"])
    stacks = folded("r.folded")
    require(not any("[" in s for s in stacks), [s for s in stacks if "[" in s])
    present(any("Scenarios$Changing.old;Scenarios.busy" in s for s in stacks), stacks)


def virtual_threads():
    release = subprocess.run([Setting.java, "-version"], capture_output=True, text=True,
                             check=True).stderr
    if int(re.search(r'version "(\d+)', release)[1]) < 21:
        sys.exit(77)
    lines = run("interval=1ms,file=v.folded,stats", "virtual", "200")
    stacks = folded("v.folded")
    virtual = sum(n for s, n in stacks.items() if s.endswith(";[virtual thread]"))
    require(f" virtual={virtual} " in lines[-2], virtual, lines)
    present(virtual > 0, lines)
    require(not any(s.endswith("takeVirtualThreadListToUnblock") for s in stacks), "it waits")
    require("those of virtual threads end at their carrier" in lines[-3], lines)
    require(not any("Scenarios.deep" in s for s in stacks),
            [s for s in stacks if "Scenarios.deep" in s])


def out_of_memory():
    """Allocations of the agent fail: samples are lost, and nothing else."""
    ends = []
    for first, each in (("1", "1"), ("20", "3"), ("200", "5"), ("100", "97")):
        lines = run("interval=500us,file=o.folded,threads,stats", "work", WORK_MS,
                    environment={"LD_PRELOAD": Setting.preload, "FAIL_FROM": first,
                                 "FAIL_EVERY": each})
        ends.append(lines[-1])
        if "out of memory; nothing is sampled" not in lines[0]:
            require(stats(lines)["lost"] > 0, lines)
            require("out of memory" in lines[1] or "samples written" in lines[1], lines)
    require("nothing is sampled" in ends[0] and STATS.match(ends[2]), ends)


def out_of_memory_long():
    """From the Nth allocation on all fail, or only the Nth and its multiples."""
    first, number = 1, 0
    while first < 3000:
        each = str(first) if number % 2 else "1"
        lines = run("interval=500us,file=o.folded,threads,stats", "work", "20",
                    environment={"LD_PRELOAD": Setting.preload, "FAIL_FROM": str(first),
                                 "FAIL_EVERY": each})
        require(all(line.startswith("incstack: ") for line in lines), first, each, lines)
        require("nothing is sampled" in lines[-1] or STATS.match(lines[-1]), first, each, lines)
        first, number = first + 1 + first // 8, number + 1


# ---- the experiment ----------------------------------------------------------------------------

def experiment():
    """Runs once, continues where it stopped, and reports every table."""
    os.mkdir("programs")
    with open("programs/run.sh", "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec $J/bin/java $JOPTS -cp {Setting.classes} Scenarios "$@"\n')
    os.chmod("programs/run.sh", 0o755)
    home = os.path.dirname(os.path.dirname(Setting.java))
    command = [sys.executable, "-B", os.environ["EVALUATE"], "--jvm", home, "--workloads",
               "programs", "--agent", Setting.agent, "--incstack", Setting.incstack, "--results",
               "r", "--names", f"work {Setting.work_ms}", "--techniques",
               "jvmti,partial,ticks@2ms", "--ticks", os.environ["TICKS"], "--intervals", "1ms"]

    def evaluate(*options):
        return subprocess.run([*command, *options], check=False, text=True, capture_output=True,
                              timeout=LIMIT)

    result = evaluate("--minutes", "0")
    require(result.returncode == 1 and "there are no results in r" in result.stderr, result.stderr)
    for rounds, rows in (("1", 5), ("2", 10), ("2", 10)):
        result = evaluate("--rounds", rounds)
        require(result.returncode == 0, result.stderr)
        with open("r/results.jsonl", encoding="utf-8") as file:
            require(len(file.readlines()) == rows)
    with open("r/report.md", encoding="utf-8") as file:
        report = file.read()
    rows = re.findall(r"^\| (?:work \d+ \| )?(jvmti|partial) \|", report, re.M)
    require(sorted(rows) == ["jvmti"] * 4 + ["partial"] * 4, report)
    require(report.count("Overhead in %") == 4 and "Failed:" not in report, report)
    require(len(re.findall(r"^\| ticks \| [-0-9]", report, re.M)) == 2, report)
    require(re.search(r"^\| work \d+ \| partial \|.*\| \d+\.\d \| \d+\.\d \|$", report, re.M),
            "profiles of all rounds together: " + report)
    require("--jvm HOME --workloads FOLDER" in report and os.getcwd() not in report and
            home not in report, report)
    for plot in ("overhead.svg", "latency.svg") if shutil.which("gnuplot") else ():
        with open(f"r/{plot}", encoding="utf-8") as file:
            require("partial" in file.read(), plot)
    with open("d.md", "w", encoding="utf-8") as file:
        file.write("kept\n<!-- results -->\nold\n")
    os.mkdir("images")
    require(evaluate("--rounds", "2", "--document", "d.md").returncode == 0)
    with open("d.md", encoding="utf-8") as file:
        text = file.read()
    require(text.startswith("kept\n<!-- results -->\n") and "old" not in text and report in text
            .replace(" --document FILE", ""), text)
    result = evaluate("--jvm", "/no/such")
    require(result.returncode == 2 and "there is no /no/such" in result.stderr, result.stderr)


def made_up_row(technique, seconds, traces):
    return {"key": ["w", technique, "1ms" if traces else "a", 0], "status": 0, "wall": seconds,
            "processor": seconds, "others": 0, "time": "2000-01-01 00:00", "threads_ms": 1000,
            "latency": [1000, 0, 1000, 1, 2, 3, 4, 5, 6],
            **({"stats": {"traces": traces, "truncated": 0, "depth_mean": 5}} if traces else {})}


def experiment_factors():
    """What is added, 0.333 against 0.143, for a quarter of the samples; and an overhead within the noise."""
    os.mkdir("r")
    with open("r/results.jsonl", "w", encoding="utf-8") as file:
        for row in (("none", 1, 0), ("jvmti", 1.4, 100), ("partial-incremental", 1.2, 400)):
            file.write(json.dumps(made_up_row(*row)) + "\n")
        again = made_up_row("none", 1.1, 0)
        file.write(json.dumps({**again, "key": ["w", "none", "b", 0]}) + "\n")

    def report():
        subprocess.run([sys.executable, "-B", os.environ["EVALUATE"], "report", "--results", "r"],
                       check=True, timeout=LIMIT, stdout=subprocess.DEVNULL)
        with open("r/report.md", encoding="utf-8") as file:
            return file.read().partition("What jvmti adds")[2]

    found = dict(re.findall(r"^\| (run time|processor time[ a-z]*) \| (\S+) \|$", report(), re.M))
    require(found == {"run time": "2.3", "processor time": "2.3",
                      "processor time for each sample": "9.3"}, found)
    with open("r/results.jsonl", "a", encoding="utf-8") as file:
        for technique, seconds in (("none", 1), ("none", 1.5)):
            row = made_up_row(technique, seconds, 0)
            file.write(json.dumps({**row, "key": ["w", "none", str(seconds), 1]}) + "\n")
    require("| run time | noise |" in report(), "an overhead within the noise has a factor")


# ---- a JVM with the library inside -------------------------------------------------------------

def checked(mode, *program, flags=()):
    """Each incremental trace is compared with a full walk. Returns counters and stacks."""
    lines = run(f"interval=500us,mode={mode},file=e.folded,threads,stats,check", *program,
                flags=flags)
    if "use mode=partial" in lines[0]:
        sys.exit(77)
    seen, stacks = stats(lines), folded("e.folded")
    require(seen["mode"] == mode and seen["mismatches"] == seen["stale"] == 0, seen)
    require(seen["traces"] == sum(stacks.values()), seen)
    require(seen["crosschecked"] == (0 if mode == "partial" else seen["traces"]), seen)
    require(not any("[" in s or "0x" in s for s in stacks),
            [s for s in stacks if "[" in s or "0x" in s])
    present(seen["traces"] > 0 and (mode == "partial" or seen["returns"] > 0), seen)
    return seen, stacks


def extended_parts():
    """What was counted in one part is not counted in the next one."""
    lines = run("interval=500us,split=50ms,file=p.folded,stats,check", "work", WORK_MS)
    if "(partial safepoints, incremental" not in lines[0]:
        sys.exit(77)
    counted = stats_of_parts(lines)
    require(all(part["crosschecked"] == part["traces"] for part in counted), counted)
    present(len([part for part in counted if part["returns"]]) >= 3, counted)


def extended():
    for mode in ("partial", "incremental", "partial-incremental"):
        _, stacks = checked(mode, "work", WORK_MS)
        deep = [s for s in stacks if s.count("Scenarios.deep;") == 101]
        present(deep, mode)
        require(all(re.match(r"worker B;java\.lang\.Thread\.run;.*\.run;Scenarios\.lambda", s)
                    for s in deep), deep)
        checked(mode, "threads", "1000")
        _, stacks = checked(mode, "unload", "64", Setting.agent, flags=["-Xcheck:jni"])
        present(any("Scenarios$Loaded.run;Scenarios.deep" in s for s in stacks), stacks)
        seen, stacks = checked(mode, "deep", "3000", WORK_MS)
        require(seen["truncated"] == 0, seen)
        present(max(len(s.split(";")) for s in stacks) == 3005, mode)


def attempt(name):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            globals()[name]()
        finally:
            os.chdir("/")


def main():
    Setting.java, Setting.agent, Setting.classes, Setting.incstack, Setting.preload = sys.argv[1:6]
    for name in sys.argv[6:]:
        for tries in range(6, 0, -1):
            try:
                attempt(name)
                break
            except NotSeenYet as error:
                if tries == 1:
                    raise
                print("again:", error)
                Setting.work_ms *= 2
        print(f"{name}: good")


if __name__ == "__main__":
    main()
