# SPDX-License-Identifier: MIT
"""The C program in README.md compiles without a warning, links, runs and prints a trace."""
import pathlib
import re
import subprocess
import sys
import tempfile


def main():
    compiler, archive = sys.argv[1:]
    text = pathlib.Path("README.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```c\n(.*?)^```", text, re.M | re.S)
    if len(programs) != 1:
        sys.exit(f"README.md shows {len(programs)} C programs, not one")
    with tempfile.TemporaryDirectory() as folder:
        source, program = folder + "/readme.c", folder + "/readme"
        pathlib.Path(source).write_text(programs[0], encoding="utf-8")
        subprocess.run([compiler, "-std=gnu11", "-O2", "-fno-omit-frame-pointer", "-Wall",
                        "-Wextra", "-Werror", "-Iinclude", source, archive, "-pthread",
                        "-o", program], check=True)
        out = subprocess.run([program], check=True, capture_output=True, text=True)
    frames = out.stdout.split()
    if not frames or not all(re.fullmatch("0x[0-9a-f]+", frame) for frame in frames):
        sys.exit(f"no trace was printed: {out.stdout!r}")
    print(f"{len(frames)} frames")


if __name__ == "__main__":
    main()
