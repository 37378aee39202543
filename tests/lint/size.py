# SPDX-License-Identifier: MIT
"""The part for frames on the heap is small: what an interpreter that links all of it gets."""
import subprocess
import sys

TEXT, BSS = 40 * 1024, 64  # bytes


def main():
    size, archive = sys.argv[1:]
    out = subprocess.run([size, "--totals", archive], check=True, capture_output=True, text=True)
    text, data, bss = (int(number) for number in out.stdout.splitlines()[-1].split()[:3])
    print(f"{text} bytes of text, {data} of data, {bss} of bss")
    if not text or text > TEXT or bss > BSS:
        sys.exit(f"more than {TEXT} bytes of text or {BSS} of bss, or nothing at all")


if __name__ == "__main__":
    main()
