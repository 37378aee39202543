# SPDX-License-Identifier: MIT
"""libgcc_s must stand before libunwind in a program that links incstack::native:
both export _Unwind_*, and the first one serves throw and pthread_exit."""
import re
import subprocess
import sys


def order_error(needed):
    """What is wrong with a list of libraries, or None."""
    gcc = [i for i, name in enumerate(needed) if name.startswith("libgcc_s")]
    unwind = [i for i, name in enumerate(needed) if name.startswith("libunwind")]
    if not gcc:
        return "libgcc_s is not linked: " + " ".join(needed)
    if unwind and unwind[0] < gcc[0]:
        return "libunwind stands before libgcc_s: " + " ".join(needed)
    return None


def main():
    readelf, program = sys.argv[1:]
    out = subprocess.run([readelf, "-d", program], check=True, capture_output=True, text=True)
    error = order_error(re.findall(r"\(NEEDED\).*\[(.*)\]", out.stdout))
    if error:
        sys.exit(error)


if __name__ == "__main__":
    main()
