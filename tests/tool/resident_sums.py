# SPDX-License-Identifier: MIT
"""resident_sums.py JSON [TRUTH [PID]]: checks the numbers of a report on resident memory.

Its rows add up to all anonymous pages. TRUTH has a line for each function of the target: its live bytes, and its
resident bytes as mincore shows them. With PID, the process still runs and holds still, so that the kernel counts now
what it counted when somebody looked.
"""
import json
import sys

PAGE = 4096


def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what} is {found}, not {wanted}")


def kernel_counts(pid):
    """Returns the bytes of anonymous memory that the kernel counts."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
        return next(int(line.split()[1]) << 10 for line in rollup if line.startswith("Anonymous:"))


def check_rows(report):
    """The rows add up; the kernel counts all but pages of zeros, which nobody has written to."""
    found = report["resident"]
    rows = ("live_anonymous", "allocator", "stacks", "files_written", "other")
    check("the sum of the rows", sum(found[row] for row in rows), found["anonymous"])
    if not any("recorded from outside" in line for line in report["warnings"]):
        check("the lost traces", report["traces"]["lost"], 0)
    if found["partial"]:
        sys.exit("not all pages were looked at")
    if found["fragmented"] > found["allocator"]:
        sys.exit("more is fragmented than the allocator has")
    if found["live"] > found["requested"]:
        sys.exit("more is resident than was requested")


def check_functions(report, truth):
    kinds = [kind["name"] for kind in report["kinds"]]
    live, resident = kinds.index("live at exit"), kinds.index("resident")
    functions = {row["function"]: row["own"] for row in report["functions"]}
    checked = 0
    for line in truth:
        words = line.split()
        if len(words) != 3:
            continue
        check(f"live of {words[0]}", functions[words[0]][live], int(words[1]))
        check(f"resident of {words[0]}", functions[words[0]][resident], int(words[2]))
        checked += 1
    check("the number of functions", checked, 11)
    total = report["kinds"][resident]["total"]
    check("the sum of the contexts", total, report["resident"]["live"])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    check_rows(report)
    if len(sys.argv) > 2:
        with open(sys.argv[2], encoding="ascii") as file:
            check_functions(report, file)
    if len(sys.argv) > 3:
        found = report["resident"]
        check("what the kernel counts", found["kernel_anonymous"], kernel_counts(sys.argv[3]))
        # The target reads 75 pages at most before it writes to them.
        zeros = found["anonymous"] - found["kernel_anonymous"]
        if not 74 * PAGE <= zeros <= 76 * PAGE:
            sys.exit(f"{zeros} bytes of pages are not the kernel's")


main()
