# SPDX-License-Identifier: MIT
"""OTLP files under the official schema: protoc's decoder accepts each, knows every field, and what it writes is the same
profile to the reader of our own and to incstack.

    otlp_official.py INCSTACK [PROFILES [SEED]]

The schema is in /usr/include (Debian's package opentelemetry-proto, 1.11.0 or later) or in the folder
INCSTACK_OTLP_PROTO. Skipped without it, protoc or Python's protobuf.
"""
import importlib
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

from profile_files import READERS, random_source

SKIPPED = 77
FILES = [f"opentelemetry/proto/{name}.proto" for name in
         ("common/v1/common", "resource/v1/resource", "profiles/v1development/profiles")]


def skip(why):
    print(why)
    sys.exit(SKIPPED)


def official(folder):
    """The class of the outermost message."""
    root = pathlib.Path(os.environ.get("INCSTACK_OTLP_PROTO", "/usr/include"))
    if not (root / FILES[-1]).exists() or "KeyValueAndUnit" not in (root / FILES[-1]).read_text(encoding="utf-8"):
        skip("there is no opentelemetry-proto, or it is too old")
    if not shutil.which("protoc"):
        skip("there is no protoc")
    subprocess.run(["protoc", f"-I{root}", f"--python_out={folder}", *FILES], check=True)
    sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module("opentelemetry.proto.profiles.v1development.profiles_pb2")
    except (ImportError, TypeError) as error:
        skip(f"this Python cannot load what protoc has made: {error}")
    return module.ProfilesData


def check(tool, source, kind, folder):
    ours, theirs, back = (folder / name for name in ("ours.otlp.pb", "theirs.otlp.pb", "back.pb.gz"))
    subprocess.run([tool, "convert", source, ours], check=True, stderr=subprocess.DEVNULL)
    data = kind.FromString(ours.read_bytes())
    size = len(data.SerializeToString())
    data.DiscardUnknownFields()
    assert len(data.SerializeToString()) == size, "a field that the schema does not know"
    for table in ("mapping", "location", "function", "link", "attribute", "stack"):
        first = getattr(data.dictionary, f"{table}_table")[0]
        assert first == type(first)(), f"{table}_table does not begin with an empty element"
    theirs.write_bytes(data.SerializeToString(deterministic=True))
    want, got = READERS["otlp.pb"](ours), READERS["otlp.pb"](theirs)
    assert want.without(()) == got.without(()), "the profile is another one"
    subprocess.run([tool, "convert", theirs, back], check=True, stderr=subprocess.DEVNULL)
    for what, a, b in zip(("kinds", "samples", "attributes"), READERS["pb.gz"](back).without({"mappings"}),
                          want.without({"mappings"})):
        assert a == b, f"incstack reads other {what}: {a!r:.300}, not {b!r:.300}"


def main():
    tool = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        kind = official(folder)
        for i in range(seed, seed + count):
            source, _ = random_source(random.Random(i), folder)
            check(tool, source, kind, folder)
    print(f"profiles: {count}")


if __name__ == "__main__":
    main()
