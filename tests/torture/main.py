# SPDX-License-Identifier: MIT
"""The torture lane; scripts/torture --help says what it does.

Each program of programs.toml runs three times: bare, recorded, and recorded with
--crosscheck. A difference from the bare run is an error, and so is a loss that the recorder counts
without a known reason. The recorded and the crosschecked run of a deterministic program must have the same
folded stacks."""
import argparse
import collections
import concurrent.futures
import datetime
import os
import pathlib
import shutil
import sys
import tempfile
import threading

import packages
import results
import runs
import verdict
from table import HERE, read_table

ROOT = HERE.parent.parent
FAILED_MAX = 3  # failed runs of each program of which everything is kept


def parse():
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all without it")
    parser.add_argument("--quick", action="store_true", help="a dozen programs only")
    parser.add_argument("--list", action="store_true", help="name the programs and stop")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="run N programs at once")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run all N times")
    parser.add_argument("--seconds", type=float, default=10, metavar="S",
                        help="about as long is a crosschecked run (default: 10)")
    parser.add_argument("--traces", type=int, default=0, metavar="N",
                        help="repeat until the results hold N crosschecked traces")
    parser.add_argument("--mode", default="patch", choices=("patch", "validate", "full"))
    parser.add_argument("--tool", default=str(ROOT / "build/release/incstack"), help="incstack")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE",
                        default=ROOT / "build/torture/results.jsonl", help="results go there")
    parser.add_argument("--no-install", action="store_true",
                        help="leave out programs whose packages are missing")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR",
                        help="keep what each program wrote, and its reports, there")
    parser.add_argument("--render", action="store_true",
                        help="put the results into docs/reliability.md and stop")
    return parser.parse_args()


class Lane:
    """The state that all runs share."""

    def __init__(self, options):
        self.options = options
        self.commit = results.git_commit()
        self.work = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="torture."))
        self.work.mkdir(parents=True, exist_ok=True)
        self.work.chmod(0o777)
        self.install_lock = threading.Lock()
        self.result_lock = threading.Lock()
        self.failed = 0

    def close(self):
        if not self.options.keep:
            shutil.rmtree(self.work, ignore_errors=True)

    def install(self, program):
        names = program.packages.split()
        if self.options.no_install:
            gone = packages.missing(names)
            return f"missing packages: {' '.join(gone)}" if gone else ""
        with self.install_lock:
            return packages.install(names)

    def result(self, program, name, errors, **fields):
        return {"name": name, "kind": program.kind, "verdict": name and "left out",
                "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                "commit": self.commit, "errors": errors, **fields}

    def run_all_ways(self, program, work, seed):
        scale = max(1, round(self.options.seconds))
        variables = {"SCALE": scale, "SEED": seed}
        error = runs.prepare(program, work, variables)
        if error:
            return self.result(program, program.name, [error])
        options = f"--mode {self.options.mode} {program.options}"
        bare = runs.run(program, work, "bare", "", "", variables)
        recorded = runs.run(program, work, "recorded", self.options.tool, options, variables)
        checked = runs.run(program, work, "crosscheck", self.options.tool,
                           options + " --crosscheck", variables)
        errors = verdict.judge(program, scale, bare, recorded, checked)
        reason = program.truncated if checked.counts["truncated"] else ""
        return self.result(
            program, program.name, errors, verdict="FAILED" if errors else "ok",
            version=packages.version((program.packages.split() or [""])[0]),
            bare_status=bare.status, recorded_status=recorded.status,
            crosscheck_status=checked.status,
            equal=not any(verdict.outputs_differ(program, bare, run)
                          for run in (recorded, checked)),
            folded_equal=not verdict.folded_difference(recorded, checked),
            recorded=recorded.counts, crosscheck=checked.counts,
            mode=(checked.modes or ["-"])[0],
            remarks=sorted(set(recorded.remarks + checked.remarks)),
            truncated_reason=reason, seconds=bare.seconds + recorded.seconds + checked.seconds,
            scale=scale, seed=seed)

    def keep_failed(self, program, work, seed):
        """Keeps what the first failed runs of a program wrote, so that the cause can be found."""
        kept = self.options.results.parent / "failed"
        if len(list(kept.glob(f"{program.name}.*"))) < FAILED_MAX:
            shutil.copytree(work, kept / f"{program.name}.{seed}", dirs_exist_ok=True,
                            symlinks=True, ignore=shutil.ignore_patterns("input", "place"))

    def torture(self, program, seed):
        error = self.install(program)
        work = self.work / program.name
        work.mkdir(exist_ok=True)
        work.chmod(0o777)
        if error:
            result = self.result(program, program.name, [error])
        else:
            result = self.run_all_ways(program, work, seed)
        if result["verdict"] == "FAILED":
            self.keep_failed(program, work, seed)
        if not self.options.keep:
            for directory in work.glob("reports.*"):
                shutil.rmtree(directory, ignore_errors=True)
        with self.result_lock:
            results.append(self.options.results, result)
            self.failed += result["verdict"] == "FAILED"
            print(results.line(result), flush=True)

    def round(self, programs, seed):
        together = [program for program in programs if not program.exclusive]
        alone = [program for program in programs if program.exclusive]
        with concurrent.futures.ThreadPoolExecutor(self.options.j) as pool:
            list(pool.map(lambda program: self.torture(program, seed), together))
        for program in alone:
            self.torture(program, seed)


def choose(options):
    known = read_table()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        sys.exit(f"torture: no such program: {' '.join(unknown)}; see --list")
    names = options.names or known
    return [known[name] for name in names if options.names or known[name].quick
            or not options.quick]


def behind(options, programs):
    """The programs that ran less often than others so far. So an interrupted round continues."""
    if options.traces == 0:
        return programs
    done = collections.Counter(result["name"] for result in results.read(options.results))
    least = min(done[program.name] for program in programs)
    return [program for program in programs if done[program.name] == least]


def enough(options, rounds):
    if options.traces == 0:
        return rounds >= options.repeat
    return results.crosschecked(results.read(options.results)) >= options.traces


def main():
    options = parse()
    if options.render:
        results.render(results.read(options.results))
        return 0
    programs = choose(options)
    if options.list:
        for program in programs:
            print(f"{program.name:<20} {program.kind:<12} {program.packages}")
        return 0
    if not os.access(options.tool, os.X_OK):
        sys.exit(f"torture: {options.tool} is not there; build it first")
    options.tool = os.path.realpath(options.tool)
    lane = Lane(options)
    rounds = 0
    seed = len(results.read(options.results))
    while not enough(options, rounds):
        before = results.crosschecked(results.read(options.results))
        lane.round(behind(options, programs), seed + rounds)
        rounds += 1
        if options.traces and results.crosschecked(results.read(options.results)) == before:
            sys.exit("torture: no trace was crosschecked in a whole round")
    lane.close()
    sum_of_all = results.crosschecked(results.read(options.results))
    print(f"all: {len(programs)} programs, {rounds} rounds, {lane.failed} failed; "
          f"{sum_of_all} crosschecked traces in {options.results}")
    return lane.failed > 0


if __name__ == "__main__":
    sys.exit(main())
