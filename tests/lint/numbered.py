# SPDX-License-Identifier: MIT
"""Decisions (D17) and invariants (I3, S3, L3) have numbers. Each number is used once, each decision is dated,
and each number that a document or a comment cites exists."""
import pathlib
import re
import sys

import documents

DECISIONS, INVARIANTS = "docs/decisions.md", "docs/invariants.md"
HEADING = re.compile(r"^### (.*)$", re.M)
DECISION = re.compile(r"(D[1-9]\d*) \(\d{4}-\d\d-\d\d\): \S.*")
ROW = re.compile(r"^\| ([ISL][1-9]\d*) \|", re.M)
# Not the caches of a processor.
CITED = re.compile(r"(?<![\w%\\])([DISL][1-9]\d*)\b(?!\s+(?:\*\s+)?caches?\b)")


def twice(name, numbers):
    return [f"{name}: {number} is used twice" for number in sorted(set(numbers)) if numbers.count(number) > 1]


def decisions_of(text):
    """(the numbers, what is wrong with the headings)"""
    numbers, errors = [], []
    for heading in HEADING.findall(text):
        if match := DECISION.fullmatch(heading):
            numbers.append(match.group(1))
        else:
            errors.append(f"{DECISIONS}: a heading without number and date: {heading}")
    return numbers, errors + twice(DECISIONS, numbers)


def invariants_of(text):
    numbers = ROW.findall(text)
    return numbers, twice(INVARIANTS, numbers)


def missing(name, text, numbers):
    """What a file cites and no document has."""
    prose = documents.prose(name, text)
    return [f"{name}:{prose.count(chr(10), 0, match.start()) + 1}: cites {match.group(1)}, which does not exist"
            for match in CITED.finditer(prose) if match.group(1) not in numbers]


def main():
    decisions, errors = decisions_of(pathlib.Path(DECISIONS).read_text(encoding="utf-8"))
    invariants, more = invariants_of(pathlib.Path(INVARIANTS).read_text(encoding="utf-8"))
    if len(decisions) < 50 or len(invariants) < 20:
        sys.exit("the numbers were not found; nothing was checked")
    errors += more
    for name, text in documents.texts():
        errors += missing(name, text, {*decisions, *invariants})
    if errors:
        sys.exit("\n".join(errors))
    print(f"{len(decisions)} decisions, {len(invariants)} invariants")


if __name__ == "__main__":
    main()
