#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the built programs and objects are hardened as Debian hardens its packages.

usage: hardening.py READELF FILE...

A FILE that begins with "link:" is only checked for what the linker does, because its code runs within
samples and calls of malloc, where guards of the stack would cost instructions.
"""
import re
import subprocess
import sys


def told(readelf, *arguments):
    return subprocess.run([readelf, "-W", *arguments], check=True, capture_output=True, text=True).stdout


def missing(readelf, path, only_link):
    """What `path` lacks, in words."""
    headers, dynamic = told(readelf, "-lh", path), told(readelf, "-d", path)
    names = {line.split()[7].split("@")[0] for line in told(readelf, "--dyn-syms", path).splitlines()
             if len(line.split()) > 7}
    tests = {
        "RELRO": "GNU_RELRO" in headers,
        "BIND_NOW": re.search(r"BIND_NOW|FLAGS_1.*NOW", dynamic),
        "position independence (PIE)": re.search(r"Type:\s+DYN", headers),
        "a stack that cannot be executed": re.search(r"GNU_STACK.* RW ", headers),
    }
    if not only_link:
        tests["a stack protector"] = "__stack_chk_fail" in names
        tests["fortified functions"] = any(name.startswith("__") and name.endswith("_chk") for name in names)
    return [what for what, found in tests.items() if not found]


def main():
    readelf, *files = sys.argv[1:]
    status = 0
    for name in files:
        path = name.removeprefix("link:")
        for what in missing(readelf, path, path != name):
            print(f"{path}: lacks {what}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
