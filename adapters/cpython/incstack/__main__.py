# SPDX-License-Identifier: MIT
"""The command `python3 -m incstack`: records a whole program."""
import argparse
import os
import runpy
import sys
import types

import incstack
from incstack import table

DESCRIPTION = "Records every allocation of a Python program with its stack, and says which lines allocate."
EPILOG = """examples:
  python3 -m incstack heap program.py              the table of lines, on stderr
  python3 -m incstack heap -o out.html program.py  a flame graph, too
  python3 -m incstack heap -o out.pb.gz -m module  for pprof

The suffix of the file chooses the format: """ + incstack.FORMATS + "."


def parser() -> argparse.ArgumentParser:
    commands = argparse.ArgumentParser(prog="python3 -m incstack", description=DESCRIPTION, epilog=EPILOG,
                                       formatter_class=argparse.RawDescriptionHelpFormatter)
    commands.add_argument("--version", action="version", version="incstack " + incstack.__version__)
    names = commands.add_subparsers(dest="command", metavar="COMMAND", required=True)
    heap = names.add_parser("heap", help="record allocations", description=DESCRIPTION, epilog=EPILOG,
                            formatter_class=argparse.RawDescriptionHelpFormatter)
    heap.add_argument("-o", "--output", metavar="FILE", help="write the profile to this file")
    heap.add_argument("--kind", choices=("allocated", "allocations", "temporary", "peak", "live"),
                      default="allocated", help="the weight of a .folded file, and the order of the table")
    heap.add_argument("--lines", type=int, default=10, metavar="N", help="lines of the table (default 10)")
    heap.add_argument("--check", action="store_true",
                      help="compare each stack with a walk over all frames, and report the result")
    heap.add_argument("-m", dest="is_module", action="store_true", help="the program is a module")
    heap.add_argument("program", help="a file with a program, or with -m the name of a module")
    heap.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's arguments")
    return commands


def run_file(path: str) -> None:
    """Runs the file as Python itself would: as the module __main__."""
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def report(options: argparse.Namespace) -> None:
    counts = incstack.counts()
    if options.output:
        incstack.write(options.output, kind=options.kind)
    print(table.text(incstack.lines(), counts, options.kind, options.lines), file=sys.stderr, end="")
    if options.output:
        print(f"incstack: wrote {options.output}", file=sys.stderr)
    if options.check:
        print("incstack: check: traces={compared} mismatches={mismatches} lost={lost} barriers={fired} "
              "foreign={foreign}".format(**counts), file=sys.stderr)


def record(options: argparse.Namespace) -> None:
    process = os.getpid()
    incstack._launcher = __file__
    incstack.start(check=options.check)
    try:
        if options.is_module:
            sys.path[0] = os.getcwd()
            runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        else:
            run_file(options.program)
    finally:
        if incstack._incstack.is_on():
            incstack.stop()
        if os.getpid() == process:
            report(options)


def main() -> None:
    commands = parser()
    options = commands.parse_args()
    try:
        if options.output:
            incstack._format_of(options.output)
        if not options.is_module and not os.path.isfile(options.program):
            raise ValueError(f"there is no file {options.program}: name a program of Python, or use -m for a module")
    except ValueError as error:
        commands.exit(2, f"incstack: {error}\n")
    sys.argv = [options.program, *options.arguments]
    record(options)


if __name__ == "__main__":
    main()
