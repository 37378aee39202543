# SPDX-License-Identifier: MIT
#
# The programs that are traced: Debian's binaries, single-threaded, each with an input
# that makes it allocate some hundred thousand times, and what windows.py and heaptrack.py
# both do with them and with their figures.
import argparse
import csv
import os
import random
import shutil
import statistics
import subprocess
import sys

RESAMPLED = 300
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

SCRIPT = """
import json, re, collections
tree = {"k%d" % i: [{"id": i, "name": "n%d" % (i * 7), "list": list(range(i % 9))}] for i in range(SIZE)}
text = json.dumps(tree, indent=1)
words = collections.Counter(re.findall("[a-z0-9]+", text))
def depth(node, n=0):
    if isinstance(node, dict):
        return max((depth(v, n + 1) for v in node.values()), default=n)
    return max((depth(v, n + 1) for v in node), default=n) if isinstance(node, list) else n
print(len(words), depth(json.loads(text)))
"""

PERL = """
my (%h, @l);
for my $i (1 .. SIZE) { push @{$h{"k" . $i % 997}}, { id => $i, text => "w$i" x ($i % 5) }; }
sub walk { my ($n) = @_; return ref $n eq 'HASH' ? [map { walk($n->{$_}) } sort keys %$n]
    : ref $n eq 'ARRAY' ? [map { walk($_) } @$n] : "<$n>"; }
@l = @{walk(\\%h)};
print scalar(@l), "\\n";
"""

SQL = """
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, score REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < SIZE)
    INSERT INTO t SELECT i, 'name' || (i * 7919 % 1009), i * 0.5 FROM n;
CREATE INDEX t_name ON t(name);
SELECT name, count(*), group_concat(id, '-') FROM t GROUP BY name ORDER BY 2, 1 LIMIT 5;
SELECT count(*), sum(length(printf('%08d:%s', a.id, b.name)))
    FROM t a JOIN t b ON a.name = b.name WHERE a.id % 10 = 0;
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def json_document(path, size):
    pick = random.Random(1)
    rows = ('{"id":%d,"tags":["a%d","b%d"],"in":{"x":%d,"y":[%d,%d]}}'
            % (i, i % 13, i % 7, pick.randrange(1000), i, i * 2) for i in range(size))
    return write(path, "[" + ",\n".join(rows) + "]")


def statements(path, size):
    """Many small statements: each is parsed, planned and freed."""
    lines = [SQL.replace("SIZE", str(size))]
    for i in range(size):
        lines.append(f"SELECT upper(name), score * {i} FROM t WHERE id IN ({i}, {i + 1}, {i * 2})"
                     f" AND name LIKE 'name%{i % 10}' ORDER BY score DESC;")
    return write(path, "\n".join(lines))


def preprocessed(path):
    """Sources of the library in one file, so that cc1 compiles them without its driver."""
    names = ["profiler/tracefile/read.c", "profiler/tool/report/symbols.c"]
    text = subprocess.run(["gcc", "-E", "-D_GNU_SOURCE=", "-Iinclude", "-Isrc", "-Iprofiler", "-x", "c", "-"],
                          input="".join(f'#include "{name}"\n' for name in names), cwd=ROOT,
                          check=True, capture_output=True, text=True).stdout
    return write(path, text)


class Target:
    def __init__(self, name, command, environment=None, stdin=None):
        self.name = name
        self.command = command
        self.environment = environment or {}
        self.stdin = stdin


def targets(directory, scale):
    """The targets that are installed, with their inputs in `directory`."""
    os.makedirs(directory, exist_ok=True)
    inside = lambda name: os.path.join(directory, name)
    size = lambda n: str(max(1, int(n * scale)))
    # Not what PATH finds first: that may be a shell script which starts another.
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    found = [Target("python3", [python, write(inside("p.py"), SCRIPT.replace("SIZE", size(6000)))],
                    {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}),
             Target("jq", ["jq", "-c", "[.[] | {id, t: (.tags | join(\"-\")), s: (.in.x + .in.y[1])}"
                           " | select(.s % 3 == 0)] | group_by(.t) | map({t: .[0].t, n: length})",
                           json_document(inside("j.json"), int(size(6000)))]),
             Target("sqlite3", ["sqlite3", ":memory:"],
                    stdin=statements(inside("s.sql"), int(size(4000)))),
             Target("perl", ["perl", write(inside("p.pl"), PERL.replace("SIZE", size(60000)))],
                    {"PERL_HASH_SEED": "0"})]
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True,
                         check=False).stdout.strip()
    if os.path.exists(cc1):
        found.append(Target("cc1", [cc1, "-quiet", "-O2", "-o", "/dev/null",
                                    preprocessed(inside("c.i"))]))
    return [t for t in found if shutil.which(t.command[0])]


def options(description, runs, scale):
    """The options that both benchmarks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--output", help="where inputs and figures go; BUILD/bench")
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--scale", type=float, default=scale, help="size of the inputs")
    parser.add_argument("programs", nargs="*", help="python3 jq sqlite3 perl cc1; all")
    return parser


def chosen(arguments):
    """The targets that the command line names; there is one at least."""
    arguments.output = arguments.output or os.path.join(arguments.build, "bench")
    found = [target for target in targets(os.path.join(arguments.output, "inputs"), arguments.scale)
             if not arguments.programs or target.name in arguments.programs]
    if not found:
        sys.exit("bench: no program to measure")
    return found


def trimmed_mean(values, trim):
    """The values without that part of them at either end."""
    values = sorted(values)
    cut = int(len(values) * trim)
    return statistics.fmean(values[cut:len(values) - cut])


def interval(ratios):
    """The limits between which 95 % of them lie."""
    ratios = sorted(ratios)
    return ratios[int(len(ratios) * 0.025)], ratios[int(len(ratios) * 0.975)]


def write_csv(path, rows):
    with open(path, "w", encoding="utf-8") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def run(target, environment):
    """Runs it; returns its user + system time in seconds."""
    stdin = open(target.stdin, "rb") if target.stdin else subprocess.DEVNULL
    process = subprocess.Popen(target.command, env={**os.environ, **target.environment,
                                                    **environment},
                               stdin=stdin, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if target.stdin:
        stdin.close()
    if process.returncode != 0:
        raise RuntimeError(f"{target.name} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def moved(arguments, environment):
    """The environment for a heap at a new place."""
    shift = os.path.join(arguments.build, "bench/libbench_shift.so")
    preload = " ".join([environment.get("LD_PRELOAD", ""), shift]).strip()
    return {**environment, "LD_PRELOAD": preload,
            "INCSTACK_SHIFT": f"{16 * random.randrange(4096):05}"}


def run_moved(target, arguments, environment):
    return run(target, moved(arguments, environment))
