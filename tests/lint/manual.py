# SPDX-License-Identifier: MIT
"""The manual pages: groff formats them without a warning."""
import pathlib
import subprocess
import sys

# An example may be longer than the line of a terminal (-Wbreak).
OPTIONS = ("-t", "-Tutf8", "-z", "-mandoc", "-Wbreak")


def main():
    pages = sorted(pathlib.Path("man").glob("*.1"))
    if not pages:
        sys.exit("man/ has no page")
    failed = False
    for page in pages:
        done = subprocess.run([sys.argv[1], *OPTIONS, str(page)], check=True,
                              capture_output=True, text=True)
        print(done.stderr, end="")
        failed |= bool(done.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
