#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gives damaged and hostile files to report, convert, compare and merge.

usage: hostile_files.py TOOL CORPUS FORMAT

CORPUS is the folder with the corpora of the fuzzers, whose files are damaged here. Each command must end by itself
with status 0, or with status 1 or 2 and one line that says why. Its memory is limited by a constant and a
number for each byte of the file.
"""
import gzip
import json
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

MEMORY_LEAST, MEMORY_EACH = 3 << 29, 2048
LEAST_FILES = 40
BIG = 4 << 20  # larger ones are only given compressed
SECONDS = 600  # far more than any of them needs, on a machine that is busy
SUFFIXES = {"trace": ".trace", "live": ".trace", "folded": ".folded", "pprof": ".pb.gz",
            "speedscope": ".speedscope.json", "firefox": ".firefox.json"}
CORPORA = {"trace": "tracefile", "live": "spool"}


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def value(number, content):
    return varint(number << 3) + varint(content)


def pprof(location, sample):
    head = field(1, value(1, 1) + value(2, 2)) + b"".join(field(6, s) for s in (b"", b"cpu", b"count", b"f"))
    return head + field(5, value(1, 1) + value(2, 3)) + field(4, value(1, 1) + location) + sample


def made_pprof():
    line = field(4, value(1, 1) + value(2, 1))
    sample = field(2, field(1, b"\1") + field(2, b"\1"))
    return [
        field(6, b"") * 20_000_000,
        field(6, b"") + field(6, b"x" * 60_000_000),
        pprof(line * 10_000_000, sample),
        pprof(line, field(2, field(1, b"\1" * 60_000_000) + field(2, b"\1"))),
        pprof(line * 10_000, field(2, field(1, b"\1" * 20_000) + field(2, b"\1"))),
        pprof(line * 10_000, field(2, field(1, b"\1" * 200) + field(2, b"\1")) * 5000),
        pprof(line, sample * 1_000_000),
        pprof(line, varint(2 << 3 | 2) + varint(1 << 62)),
        pprof(line, field(2, field(1, b"\1") + field(2, varint((1 << 64) - 1)))),
        field(5, value(1, 1)) * 3_000_000,
        gzip.compress(gzip.compress(field(6, b"") * 1_000_000)),
    ]


def made_speedscope():
    frames = [{"name": "f"}]
    def text(profile, names=frames):
        return json.dumps({"shared": {"frames": names}, "profiles": [profile]}).encode()
    kind = {"type": "sampled", "name": "", "unit": "none", "startValue": 0, "endValue": 1}
    deep = [{"type": "O", "at": i, "frame": 0} for i in range(20_000)]
    return [
        b"[" * 1_000_000,
        b'{"a":' * 1_000_000,
        b'"' + b"x" * 5_000_000,
        text(kind | {"samples": [[0] * n for n in range(1500)], "weights": [1] * 1500}),
        text(kind | {"type": "evented", "events": deep, "endValue": 20_001}),
        text(kind | {"samples": [[0]], "weights": [1e308]}),
        text(kind | {"samples": [[4294967295]], "weights": [1]}),
        text(kind | {"samples": [[0]], "weights": [1]}, [{"name": "a\ud800"}]),
        text(kind | {"samples": [[0]], "weights": [1]}, [{"name": "\udc00" * 100_000}]),
    ]


def made_firefox():
    def text(count, prefix, frames=1):
        stacks = ",".join(map(str, range(count)))
        return (f'{{"meta":{{"version":24}},"threads":[{{"name":"","samples":{{"stack":[{stacks}]}},"stackTable":'
                f'{{"frame":[{",".join(["0"] * count)}],"prefix":[{prefix}]}},"frameTable":{{"func":[{",".join(["0"] * frames)}]}},'
                f'"funcTable":{{"name":[0]}},"stringArray":["f\\ud800"]}}]}}').encode()
    chain = "null," + ",".join(map(str, range(29_999)))
    return [
        text(30_000, chain),
        text(30_000, ",".join(["29999"] * 30_000)),
        text(10, ",".join(["null"] * 10), 1_000_000),
        b'{"threads":[' * 100_000,
        b'{"threads":[' + b"{}," * 300_000 + b"{}]}",
    ]


def made_folded():
    return [
        b"a;" * 2_000_000 + b"b 1\n",
        b";" * 1_000_000 + b" 1\n",
        b"x" * 10_000_000,
        b"\n" * 1_000_000,
        b"a 1\n" * 500_000,
        b"".join(b"a;" * n + b"b 1\n" for n in range(1000)),
        b"a 18446744073709551616\n",
        b"a 9223372036854775807\na 1\n",
        b"\0" * 1000,
        b"a\xff\xfe;\x1b[31m 1\n",
    ]


MADE = {"pprof": made_pprof, "speedscope": made_speedscope, "firefox": made_firefox, "folded": made_folded}


def damaged(seed, rng):
    """One random damage to the bytes of a file."""
    data = bytearray(seed)
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            del data[at:at + rng.randrange(1, 64)]
        elif kind == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 16))
        elif kind == 3:
            data[at:at + 8] = rng.choice([b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7])
        elif data and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
    return bytes(data)


def files(corpus, form):
    rng = random.Random(form)
    made = MADE.get(form, list)()
    seeds = [p.read_bytes() for p in sorted((corpus / CORPORA.get(form, form)).iterdir())]
    seeds = [gzip.decompress(s) if s[:2] == b"\x1f\x8b" and rng.randrange(2) else s for s in seeds if s]
    plain = made + [b"", b"\0"] + [damaged(rng.choice(seeds), rng) for _ in range(LEAST_FILES)]
    if form == "pprof":
        plain = [data for data in plain if len(data) < BIG] + [gzip.compress(data) for data in plain]
    elif form in ("trace", "live"):
        plain += [gzip.compress(data) for data in plain[:10]]
    return plain


def limit(size):
    def set_limit():
        most = MEMORY_LEAST + MEMORY_EACH * size
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return set_limit


def commands(form, name):
    if form in ("trace", "live"):
        yield ["report", name]
        yield ["convert", name, "out.folded"]
        yield ["compare", name, name]
        yield ["merge", "-o", "out.folded", name, name]
        return
    yield ["report", name]
    for out in ("out.folded", "out.pb.gz", "out.firefox.json", "out.html"):
        yield ["convert", name, out]
    yield ["compare", name, name]
    yield ["merge", "-o", "out.speedscope.json", name, name]


def check(tool, command, size, folder):
    """Returns what is wrong, or None."""
    try:
        done = subprocess.run([tool, *command], cwd=folder, capture_output=True, timeout=SECONDS,
                              preexec_fn=limit(size), check=False)
    except subprocess.TimeoutExpired:
        return "does not end"
    said = done.stderr.decode(errors="replace").splitlines()
    if done.returncode not in (0, 1, 2):
        return f"ends with {done.returncode}: {said[-3:]}"
    if any("memory" in line.lower() for line in said):
        return f"needs more memory than its limit: {said}"
    if done.returncode and not said:
        return "says nothing"
    if done.returncode and len(said) > 3:
        return f"says more than what is wrong: {said[:8]}"
    return None


def main():
    tool, corpus, form = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    status = 0
    tried = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(files(corpus, form)):
            name = "in" + SUFFIXES[form]
            pathlib.Path(folder, name).write_bytes(data if form != "live" else b"")
            if form == "live":
                pathlib.Path(folder, name + ".live").write_bytes(data)
            tried += 1
            for command in commands(form, name):
                wrong = check(tool, command, len(data), folder)
                if wrong:
                    print(f"{form} {number} ({len(data)} bytes), {' '.join(command)}: {wrong}")
                    status = 1
    print(f"{tried} files")
    return status if tried >= LEAST_FILES else 1


if __name__ == "__main__":
    sys.exit(main())
