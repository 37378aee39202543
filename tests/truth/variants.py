#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Some of the C and C++ programs again, as other compilers and options write their debug information.

usage: variants.py INCSTACK VARIANT PROGRAMS_FOLDER BUILD_FOLDER
"""
import shutil
import subprocess
import sys
from pathlib import Path

import lines

# The compiler, and options that come after those of the program.
VARIANTS = {
    "gcc-dwarf-4": ("gcc", ["-gdwarf-4"]),
    "gcc-split": ("gcc", ["-gsplit-dwarf"]),
    "gcc-split-4": ("gcc", ["-gsplit-dwarf", "-gdwarf-4"]),
    "gcc-little": ("gcc", ["-g1"]),
    "gcc-parts": ("gcc", ["-ffunction-sections", "-freorder-blocks-and-partition"]),
    "clang": ("clang", []),
    "clang-dwarf-4": ("clang", ["-gdwarf-4"]),
    "clang-split": ("clang", ["-gsplit-dwarf"]),
    "clang-little": ("clang", ["-g1"]),
}
CPP = {"gcc": "g++", "clang": "clang++"}
# Those in which functions are inlined, most of them in several ranges of addresses.
TELLING = ["class_new.cpp", "growth.c", "inline_two.c", "lambda.cpp", "own_operator.cpp", "threads.c", "vector.cpp"]


def build(source, variant, folder):
    compiler, options = VARIANTS[variant]
    flags, wanted = lines.expectations(source)
    language = [compiler, "-std=gnu11"] if source.suffix == ".c" else [CPP[compiler], "-std=c++17"]
    program = folder / source.name.replace(".", "_")
    unit = program.with_suffix(".o")
    if compiler == "clang":
        options = [*options, "-Wno-unknown-attributes"]
    subprocess.run([*language, "-g", *flags, *options, "-c", "-o", unit, source], check=True)
    subprocess.run([*language, "-g", *flags, "-o", program, unit], check=True)
    return program, wanted


def check(incstack, source, variant, folder):
    program, wanted = build(source, variant, folder)
    profile = lines.profile_of(incstack, "heap", program, folder)
    return sum(lines.check(lines.chains_of(profile, kind, source), wanted[kind], kind, f"{variant} {source.name}")
               for kind in wanted)


def check_missing(incstack, folder):
    """Without the split file, the lines of functions that are not inlined stay, and one line says what is missing."""
    (folder / "growth_c.dwo").unlink()
    report = subprocess.run([incstack, "report", folder / "growth_c.heap"], check=True, capture_output=True,
                            text=True).stdout
    warnings = [line for line in report.splitlines() if ".dwo" in line]
    if len(warnings) == 1 and "growth_c.dwo" in warnings[0] and "growth.c:" in report:
        return 0
    print(f"without its split file:\n{report}")
    return 1


def main(incstack, variant, programs, folder):
    folder = folder / variant
    if not shutil.which(VARIANTS[variant][0]):
        print(f"skipped: {VARIANTS[variant][0]} is not installed")
        return lines.SKIPPED
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    failed = sum(check(incstack, programs / name, variant, folder) for name in TELLING)
    if "split" in variant:
        failed += check_missing(incstack, folder)
    print(f"{variant}: {len(TELLING)} programs, {failed} expectations not met")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])))
