# SPDX-License-Identifier: MIT
"""The tracing core names no vector register: it runs between a return and its resume
address, where a caller may have live values in any of them."""
import re
import subprocess
import sys

VECTOR = re.compile(r"%[xyz]?mm[0-9]")


def vector_errors(text):
    """The lines of disassembled objects that name a vector register."""
    member, errors = "", []
    for line in text.splitlines():
        header = re.match(r"(\S+):\s+file format", line)
        if header:
            member = header.group(1)
        elif VECTOR.search(line):
            errors.append(f"{member}: {line.strip()}")
    return errors


def main():
    objdump, *objects = sys.argv[1:]
    out = subprocess.run([objdump, "-d", "--no-show-raw-insn", *objects],
                         check=True, capture_output=True, text=True)
    if "ret" not in out.stdout:
        sys.exit("nothing was disassembled")
    errors = vector_errors(out.stdout)
    if errors:
        sys.exit("\n".join(errors[:20]))


if __name__ == "__main__":
    main()
