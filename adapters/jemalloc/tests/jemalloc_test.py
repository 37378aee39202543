# SPDX-License-Identifier: MIT
"""The adapter for jemalloc, preloaded into small programs and linked with one.

    jemalloc_test.py FOLDER ADAPTER refuses|compares|reads|storms
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lane import SKIPPED, Failed, counts, environment, find_jemalloc, run

FOLDER, ADAPTER, JEMALLOC = pathlib.Path(sys.argv[1]), sys.argv[2], find_jemalloc()
PREFIX = "incstack-jemalloc: "


def expect(truth, what):
    if not truth:
        raise Failed(what)


def said(command, *preload, conf=None):
    """The lines of the adapter."""
    result = run(command, environment(preload, conf))
    return [line for line in result.stderr.splitlines() if line.startswith(PREFIX)]


def test_refuses():
    shell = shutil.which("sh")
    twice = [shell, "-c", "cat /dev/null; cat /dev/null; true"]
    lines = said(twice, ADAPTER)
    expect(len(lines) == 1 and "is not jemalloc" in lines[0], f"without jemalloc: {lines}")
    lines = said(twice, ADAPTER, JEMALLOC)
    expect(len(lines) == 1 and "MALLOC_CONF=prof:true" in lines[0], f"not switched on: {lines}")
    lines = said(twice, ADAPTER, JEMALLOC, conf="prof:true")
    expect(not lines, f"switched on: {lines}")
    for name, word in (("no_profiling", "--enable-prof"), ("no_hook", "5.3")):
        lines = said([FOLDER / "deep"], ADAPTER, FOLDER / f"{name}.so")
        expect(len(lines) == 1 and word in lines[0], f"{name}: {lines}")
    lines = run([FOLDER / "deep"], environment([FOLDER / "behind.so", JEMALLOC])).stderr
    expect("comes after libc" in lines, f"behind libc: {lines}")
    plain = run([FOLDER / "linked"], environment([])).stdout
    expect("is not jemalloc" in plain and ": 0 stacks" in plain, f"linked without jemalloc: {plain}")
    linked = run([FOLDER / "linked"], environment([JEMALLOC])).stdout
    expect(linked.startswith("started: ") and ": 0 stacks" not in linked, f"linked: {linked}")


def test_compares():
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report"
        for command in ([FOLDER / "deep"], [FOLDER / "storm", FOLDER / "plugin.so", FOLDER / "other_plugin.so", 30]):
            run(command, environment([FOLDER / "compare.so", JEMALLOC], INCSTACK_COMPARE=str(report)))
        total = counts(report)
    print(total)
    expect(total["stacks"] > 10000, f"only {total['stacks']} stacks")
    expect(total["frames"] > 20 * total["stacks"], "the stacks are too short to be complete")
    expect(total["differ"] == 0, f"{total['differ']} stacks differ from jemalloc's own")


def test_reads():
    """jeprof finds the functions in a profile of jemalloc."""
    jeprof = shutil.which("jeprof")
    if not jeprof:
        print("there is no jeprof (libjemalloc-dev)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        conf = f"prof:true,lg_prof_sample:10,prof_accum:true,prof_final:true,prof_prefix:{folder}/p"
        run([FOLDER / "deep"], environment([ADAPTER, JEMALLOC], conf))
        files = sorted(pathlib.Path(folder).glob("p*.heap"))
        expect(len(files) == 1, f"profiles: {files}")
        text = subprocess.run([jeprof, "--text", "--alloc_space", str(FOLDER / "deep"), str(files[0])],
                              capture_output=True, text=True, check=True).stdout
    # flat, its share, the sum of the shares, with callees, its share, name
    shares = {line.split()[5]: float(line.split()[4].rstrip("%")) for line in text.splitlines()
              if len(line.split()) >= 6}
    for name in ("descend", "start_thread", "main", "on_signal"):
        expect(name in shares, f"jeprof does not show {name}:\n{text}")
    expect(shares["descend"] > 90, f"descend has too little:\n{text}")
    # jemalloc keeps 128 frames: deeper stacks, most of them without optimization, lack the base.
    expect(shares["start_thread"] > 20, f"the stacks of threads are not complete:\n{text}")


def test_storms():
    for _ in range(20):
        result = run([FOLDER / "storm", FOLDER / "plugin.so", FOLDER / "other_plugin.so", 10],
                     environment([ADAPTER, JEMALLOC], "prof:true,lg_prof_sample:9"))
        expect(result.stdout == "ended\n" and not result.stderr, result.stdout + result.stderr)


def main():
    if not JEMALLOC:
        print("there is no libjemalloc.so.2 (libjemalloc2)")
        sys.exit(SKIPPED)
    globals()[f"test_{sys.argv[3]}"]()


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"jemalloc_test: {failure}")
