# SPDX-License-Identifier: MIT
"""Real programs under incstack heap --crosscheck=own, until enough traces are compared, or, with
--cpu, under incstack cpu --crosscheck, until enough processor time is used.

The program that has had the least processor time so far comes next, with another input each
time. Each run's figures are appended to the file of results, so that the lane can be
interrupted and goes on where it was; --render puts their sums into docs/reliability.md."""
import argparse
import datetime
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import typing

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/torture"))
# pylint: disable=wrong-import-position
import packages  # noqa: E402
import results  # noqa: E402

COUNTS = ("traces", "crosschecked", "mismatches", "lost", "truncated", "stale")
TICKS = ("expected", "taken", "queued", "failed", "merged")
RECORD = '''set -euo pipefail
record() {
	timeout --foreground --kill-after=10 900 "$TOOL" $PROFILE -o trace -- "$@" \\
		>stdout 2>report </dev/null
}
'''


class Lane(typing.NamedTuple):
    """Either what is done with the heap's profiles or with those of the CPU time."""
    profile: str   # the arguments of the tool
    results: str   # the file below the build folder
    begin: str     # what stands before the table in the document
    end: str


HEAP = Lane("heap --crosscheck=own", "results.jsonl",
            "<!-- written by scripts/crosscheck --long --render -->", "<!-- end of crosscheck -->")
CPU = Lane("cpu -i 1ms --crosscheck=libunwind", "cpu.jsonl",
           "<!-- written by scripts/crosscheck --long --cpu --render -->",
           "<!-- end of the crosscheck of CPU profiles -->")


def parse():
    parser = argparse.ArgumentParser(prog="scripts/crosscheck --long", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all without it")
    parser.add_argument("--traces", type=int, default=1_000_000_000, metavar="N",
                        help="stop when the results hold N traces (default: a thousand million)")
    parser.add_argument("--cpu", dest="lane", action="store_const", const=CPU, default=HEAP,
                        help="compare traces of CPU profiles, sampled each ms")
    parser.add_argument("--seconds", type=int, default=600, metavar="N", help="with --cpu, stop "
                        "when the results hold N seconds of processor time (default: 600)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release",
                        metavar="DIR", help="where incstack is")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE", help="they go there "
                        "(default: results.jsonl or cpu.jsonl in build/crosscheck)")
    parser.add_argument("--render", action="store_true",
                        help="put the results into docs/reliability.md and stop")
    options = parser.parse_args()
    options.results = options.results or ROOT / "build/crosscheck" / options.lane.results
    return options


def read_programs(lane):
    """Programs that allocate little are for CPU profiles only."""
    programs = tomllib.loads((HERE / "long.toml").read_text(encoding="utf-8"))
    return {name: program for name, program in programs.items()
            if lane is CPU or not program.get("cpu_only")}


# ---- one run ---------------------------------------------------------------------------------

def read_fields(text, names):
    fields = dict(field.split("=") for field in text.split())
    return {name: int(fields[name]) for name in names}


def read_report(text):
    """The counts, and how many were compared with libunwind's walks, or None."""
    last = re.findall(r"^incstack: (traces=.*)$", text, re.M)
    ticks = re.findall(r"^incstack: (expected=.*)$", text, re.M)
    walks = re.findall(r"^\d+ traces were compared with full walks, (\d+) of them", text, re.M)
    if not last:
        return None
    counts = read_fields(last[-1], COUNTS)
    if ticks:
        counts["ticks"] = read_fields(ticks[-1], TICKS)
    return {**counts, "unwound": int(walks[-1]) if walks else 0}


def run_script(script, directory, environment):
    """The exit status. Who interrupts this ends what was started."""
    with subprocess.Popen(["bash", "-c", RECORD + script], cwd=directory, env=environment,
                          stdin=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def judge(status, counts, compared=0.5):
    """What is wrong with a run; "": nothing. Of a CPU profile, that part must be compared."""
    if counts is None:
        return f"exit status {status}, and no report"
    wrong = [f"exit status {status}"] if status else []
    wrong += [f"{name}={counts[name]}" for name in ("mismatches", "lost") if counts[name]]
    ticks = counts.get("ticks")
    if ticks is None and not 0 < counts["traces"] == counts["crosschecked"]:
        wrong.append(f"{counts['crosschecked']} of {counts['traces']} compared")
    if ticks is not None:
        wrong += judge_ticks(counts, ticks, compared)
    return ", ".join(wrong)


def judge_ticks(counts, ticks, compared):
    """Most traces are compared, except where the program starts many threads (the manual page)."""
    rest = ticks["taken"] + ticks["queued"] + ticks["failed"] + ticks["merged"]
    if ticks["expected"] != rest:
        yield f"{ticks['expected']} ticks were expected, but {rest} are counted"
    if ticks["taken"] != counts["traces"]:
        yield f"{ticks['taken']} ticks gave {counts['traces']} traces"
    if not 0 < counts["traces"] * compared <= counts["crosschecked"] <= counts["traces"]:
        yield f"{counts['crosschecked']} of {counts['traces']} compared"


def profile(program, lane):
    """On signal stacks that are too small for libunwind, CPU profiles need the other walker."""
    small = program.get("small_signal_stack")
    return lane.profile.replace("libunwind", "own") if small else lane.profile


def run(name, program, seed, options):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="crosscheck."))
    environment = {"PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                   "HOME": str(directory), "SEED": str(seed), "BUILD": str(options.build),
                   "TOOL": str(options.build / "incstack"), "DEBUGINFOD_URLS": "",
                   "PROFILE": profile(program, options.lane)}
    before = processor_seconds()
    try:
        status = run_script(program["run"], directory, environment)
        report = directory / "report"
        text = report.read_text(encoding="utf-8", errors="replace") if report.exists() else ""
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    counts = read_report(text)
    return {"name": name, "version": packages.version(program.get("package", "")),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "seed": seed, "seconds": round(processor_seconds() - before, 2),
            "wrong": judge(status, counts, program.get("compared", 0.5)),
            "counts": counts or dict.fromkeys((*COUNTS, "unwound"), 0)}


# ---- all runs --------------------------------------------------------------------------------

def total(ran, count):
    return sum(result["counts"][count] for result in ran)


def ticks_of(ran, what):
    return sum(result["counts"]["ticks"][what] for result in ran if "ticks" in result["counts"])


def done(ran, options):
    """How much is done, how much is wanted, and of what. A tick stands for a millisecond."""
    if options.lane is CPU:
        return ticks_of(ran, "expected") / 1e3, options.seconds, "seconds"
    return total(ran, "crosschecked") / 1e6, options.traces / 1e6, "million"


def is_done(ran, options):
    so_far, wanted, _ = done(ran, options)
    return so_far >= wanted


def line(result, so_far, wanted, unit):
    counts = result["counts"]
    rate = counts["traces"] / result["seconds"] / 1e6 if result["seconds"] else 0
    return (f"{so_far:8.1f} of {wanted:.0f} {unit}  {result['name']:<10}"
            f" traces={counts['traces']} unwound={counts['unwound']}"
            f" mismatches={counts['mismatches']} lost={counts['lost']}"
            f" truncated={counts['truncated']} {result['seconds']:.1f} s, {rate:.2f} million/s"
            + (f"\n    FAILED: {result['wrong']}" if result["wrong"] else ""))


def installed(programs):
    """Those whose packages are there or can be had."""
    found = {}
    for name, program in programs.items():
        error = packages.install(program.get("package", "").split())
        if error:
            print(f"{name:<10} left out: {error}", flush=True)
        else:
            found[name] = program
    return found


def least_run(programs, ran):
    """The program that comes next, and how often it has run."""
    def seconds(name):
        return sum(result["seconds"] for result in ran if result["name"] == name)
    name = min(programs, key=seconds)
    return name, sum(result["name"] == name for result in ran)


def run_all(programs, options):
    """How many runs failed. A program that fails without a trace is not tried again."""
    failed = 0
    commit = results.git_commit()
    ran = results.read(options.results)
    while programs and not is_done(ran, options):
        name, seed = least_run(programs, ran)
        result = {**run(name, programs[name], seed, options), "commit": commit}
        results.append(options.results, result)
        ran.append(result)
        failed += bool(result["wrong"])
        print(line(result, *done(ran, options)), flush=True)
        if not result["counts"]["traces"]:
            del programs[name]
    return failed


# ---- the table -------------------------------------------------------------------------------

COLUMNS = {HEAP: "runs | failed | traces | by libunwind | mismatches | lost | truncated",
           CPU: "runs | failed runs | expected ticks | taken | queued | failed | merged"
                " | crosschecked | mismatches | truncated"}


def figures(ran, lane):
    if lane is HEAP:
        return [*(f"{total(ran, count):,}" for count in ("crosschecked", "unwound")),
                *(total(ran, count) for count in ("mismatches", "lost", "truncated"))]
    return [*(f"{ticks_of(ran, count):,}" for count in TICKS), f"{total(ran, 'crosschecked'):,}",
            *(total(ran, count) for count in ("mismatches", "truncated"))]


def row(name, ran, lane):
    return results.cells([
        name, ran[-1]["version"] or "of this project", len(ran),
        sum(bool(result["wrong"]) for result in ran), *figures(ran, lane),
        ran[-1]["date"][:10], ", ".join(dict.fromkeys(result["commit"] for result in ran))])


def summary(ran, lane):
    seconds = sum(result["seconds"] for result in ran)
    if lane is HEAP:
        return (f"{total(ran, 'crosschecked'):,} traces, "
                f"{total(ran, 'unwound'):,} of them with libunwind's walks, "
                f"{total(ran, 'mismatches')} mismatches; {seconds / 3600:.1f} hours of one processor.")
    return (f"{ticks_of(ran, 'expected') / 3.6e6:.2f} hours of processor time, "
            f"{total(ran, 'crosschecked'):,} traces compared with libunwind's walks, "
            f"{total(ran, 'mismatches')} mismatches.")


def table(ran, lane):
    names = sorted({result["name"] for result in ran})
    columns = f"| program | version | {COLUMNS[lane]} | date | commit |"
    return "\n".join([
        f"{len(names)} programs, {summary(ran, lane)}", "", columns,
        "|" + "---|" * (columns.count("|") - 1),
        *(row(name, [result for result in ran if result["name"] == name], lane)
          for name in names)])


def main():
    options = parse()
    ran = results.read(options.results)
    if options.render:
        if not ran:
            sys.exit(f"crosscheck: no results in {options.results}")
        results.put(table(ran, options.lane), options.lane.begin, options.lane.end)
        return 0
    known = read_programs(options.lane)
    unknown = set(options.names) - set(known)
    if unknown:
        sys.exit(f"crosscheck: no such program: {' '.join(sorted(unknown))}; there are "
                 f"{' '.join(known)}")
    options.build = options.build.resolve()
    programs = installed({name: known[name] for name in options.names or known})
    try:
        failed = run_all(programs, options)
    except KeyboardInterrupt:
        print(f"interrupted; the same command goes on from {options.results}")
        return 130
    ran = results.read(options.results)
    print(f"all: {total(ran, 'crosschecked')} traces, {total(ran, 'unwound')} of them by "
          f"libunwind, mismatches={total(ran, 'mismatches')} failed={failed}")
    return failed > 0 or not is_done(ran, options)


if __name__ == "__main__":
    sys.exit(main())
