# SPDX-License-Identifier: MIT
"""The table of programs.toml as objects, checked when it is read."""
import dataclasses
import pathlib
import re
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "programs.toml"


@dataclasses.dataclass(frozen=True)
class Program:
    """One entry. `run` is a script for bash with the functions of prelude.sh."""

    name: str
    run: str
    packages: str = ""  # of Debian; the first one's version is that of the entry
    kind: str = ""
    prepare: str = ""  # a script that makes the input in $IN, once, outside of the recorder
    normalise: tuple = ()  # pairs of a regular expression and what its matches become
    compare: str = "both"  # which output must equal that of the bare run: both, stdout, none
    mode: str = "patch"  # in force at the end; "any": depends on the machine or on chance
    options: str = ""  # more options of incstack heap
    truncated: str = ""  # why callers may be unknown
    lost: str = ""  # why traces may be lost
    unchecked: str = ""  # why traces may not be crosschecked
    stale: str = ""  # why frames may be popped unannounced
    status: int = 0  # exit status of a bare run
    least: int = 0  # the fewest traces for each unit of $SCALE
    deterministic: bool = False  # recorded and crosschecked, it has equal folded stacks
    refused: bool = False  # the tool does not start this program
    timeout: int = 400  # seconds for each run; a crosschecked one takes 20 times as long as bare
    quick: bool = False  # a part of --quick
    exclusive: bool = False  # runs alone, whatever -j says


def _program(name, fields):
    known = {field.name for field in dataclasses.fields(Program)}
    unknown = set(fields) - known
    if unknown or "run" not in fields:
        raise SystemExit(f"{TABLE}: {name}: unknown {unknown}, or no `run`")
    fields["normalise"] = tuple((re.compile(old, re.M), new)
                                for old, new in fields.get("normalise", ()))
    return Program(name=name, **fields)


def read_table():
    """The programs by name, in the order of the file."""
    entries = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: _program(name, fields) for name, fields in entries.items()}
