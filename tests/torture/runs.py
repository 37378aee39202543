# SPDX-License-Identifier: MIT
"""One run of an entry: in a fresh directory, in a session of its own, with a limit on its time."""
import collections
import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys
import time

from table import HERE

PATH = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games"
LAST_LINE = re.compile(r"^incstack: (traces=.*)$", re.M)
LINKER = re.compile(r"_?dl_|_dlerror|ld-linux")
COUNTS = ("traces", "crosschecked", "mismatches", "lost", "truncated", "returns", "stale")


@dataclasses.dataclass
class Run:
    status: int  # exit status; None: timed out
    stdout: bytes
    stderr: bytes
    seconds: float
    counts: dict
    modes: list
    remarks: list  # notes and warnings of the reports
    reports: int  # recorded programs, whether they have a report or not
    reported: int
    folded: collections.Counter = dataclasses.field(default_factory=collections.Counter)


def _environment(inputs, extra):
    kept = {"PATH": PATH, "LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "dumb", "IN": str(inputs),
            "DEBUGINFOD_URLS": "", "INPUT": str(HERE / "input")}
    return {**kept, **{name: str(value) for name, value in extra.items()}}


def bash(script, directory, environment, timeout, outputs):
    """Returns status (None: timed out), stdout, stderr and seconds. Output goes to files, because
    a server that outlives the script would keep a pipe open."""
    environment = dict(environment, HOME=str(directory))
    command = [sys.executable, str(HERE / "supervise.py"), str(timeout), script]
    start = time.monotonic()
    with open(f"{outputs}.stdout", "w+b") as out, open(f"{outputs}.stderr", "w+b") as err:
        status = subprocess.run(command, cwd=directory, env=environment, stdout=out, stderr=err,
                                stdin=subprocess.DEVNULL, start_new_session=True,
                                check=False).returncode
        written = [pathlib.Path(stream.name).read_bytes() for stream in (out, err)]
    seconds = time.monotonic() - start
    return None if status == 124 else status, *written, seconds


def _read_reports(directory):
    counts, modes, remarks = dict.fromkeys(COUNTS, 0), [], []
    reports = sorted(directory.glob("*.err"))
    reported = 0
    for report in reports:
        text = report.read_text(encoding="utf-8", errors="replace")
        remarks += re.findall(r"^(?:note|warning): .*$", text, re.M)
        lines = LAST_LINE.findall(text)
        if not lines:
            continue
        reported += 1
        fields = dict(field.split("=") for field in lines[-1].split())
        for name in COUNTS:
            counts[name] += int(fields[name])
        modes.append((int(fields["traces"]), fields["mode"]))
    # The mode of the program that has most traces, as in the tool's own sum.
    return counts, [mode for _, mode in sorted(modes, reverse=True)], remarks, len(reports), reported


def _read_folded(tool, directory):
    """How many allocations each stack has, in all traces. Bytes are not compared, because programs copy
    their environment, and with it the recorder's options. Stacks whose youngest frame is the dynamic
    linker's are left out: libunwind, which is loaded for the check, lets the linker's table of objects grow
    before the program loads its own. Empty if a trace cannot be converted."""
    stacks = collections.Counter()
    for path in directory.glob("*.trace*"):
        if path.suffix in (".folded", ".html", ".live"):
            continue
        made = subprocess.run([tool, "convert", "-k", "allocations", "-f", "folded",
                               "--max-output", str(4 << 30), path, "-"], capture_output=True, check=False)
        if made.returncode != 0:
            return collections.Counter()
        for line in made.stdout.decode("utf-8", "surrogateescape").splitlines():
            stack, _, count = line.rpartition(" ")
            if not LINKER.match(stack.rpartition(";")[2]):
                stacks[stack] += int(count)
    return stacks


def run(program, work, how, tool, options, variables):
    """Runs an entry in `work`; bare if `tool` is empty. Its output and its reports stay in files
    with `how` in their names. The folder is the same each time, because its name may be in the
    output."""
    place, reports = work / "place", work / f"reports.{how}"
    for directory in (place, reports):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        directory.chmod(0o777)
    extra = {"REPORTS": reports, "INCSTACK": tool, "OPTIONS": options, **variables}
    script = f". {HERE}/prelude.sh\n{program.run}"
    status, stdout, stderr, seconds = bash(script, place, _environment(work / "input", extra),
                                           program.timeout, work / how)
    counts, modes, remarks, count, reported = _read_reports(reports)
    folded = _read_folded(tool, reports) if tool else collections.Counter()
    return Run(status, stdout, stderr, seconds, counts, modes, remarks, count, reported, folded)


def prepare(program, work, variables):
    """Makes the input. Returns an error text, or ""."""
    inputs = work / "input"
    if (inputs / ".done").exists():
        return ""
    shutil.rmtree(inputs, ignore_errors=True)
    inputs.mkdir(parents=True)
    inputs.chmod(0o777)
    status, stdout, stderr, _ = bash("set -e\n" + program.prepare, inputs,
                                     _environment(inputs, variables), 600, work / "prepare")
    if status != 0:
        text = (stdout + stderr).decode(errors="replace").strip()
        return f"the input cannot be made (status {status}): {text[-300:]}"
    (inputs / ".done").touch()
    return ""
