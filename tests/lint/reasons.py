# SPDX-License-Identifier: MIT
"""Each reason that a report gives has a row in a manual page, and each note a test that causes it."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def plain(text):
    """The words of a manual page or of a text, without macros and punctuation."""
    text = re.sub(r"(?m)^\\.\\S+", " ", text)
    text = text.replace("\\(aq", "'").replace("\\-", "-")
    return " ".join(re.findall(r"[A-Za-z0-9'/-]+", text))


def texts_of(path, prefix):
    """The texts of a table [NAME] = "...", by name."""
    source = (ROOT / path).read_text()
    found = re.findall(r"\[%s(\w+)\]\s*=\s*((?:\"(?:[^\"\\\\]|\\\\.)*\"\s*)+)" % prefix, source)
    return {name: "".join(re.findall(r'"((?:[^"\\\\]|\\\\.)*)"', text)).replace('\\"', '"') for name, text in found}


def missing_rows(texts, manual):
    """The names whose text is not in the manual."""
    return [name for name, text in texts.items() if plain(text) not in manual]


def main():
    """Compares the tables with the manual pages and the tests."""
    errors = []
    heap, cpu = ((ROOT / "man" / f"incstack-{kind}.1").read_text() for kind in ("heap", "cpu"))
    notes = texts_of("profiler/tracefile/notes.c", "INCSTACK__NOTE_")
    ticks = texts_of("profiler/tool/report/ticks.c", "INCSTACK__TICK_")
    enum = re.findall(r"(?m)^\tINCSTACK__NOTE_(\w+),", (ROOT / "profiler/tracefile/notes.h").read_text())
    errors += [f"notes.c has no text for {n}" for n in enum if n not in notes and n != "COUNT"]
    errors += [f"incstack-heap.1 has no row for note {n}" for n in missing_rows(notes, plain(heap))]
    errors += [f"incstack-cpu.1 has no row for tick {n}" for n in missing_rows(ticks, plain(cpu))]
    tests = "".join(p.read_text(errors="replace") for p in (ROOT / "tests").rglob("*")
                    if p.suffix in (".c", ".h", ".cpp", ".sh"))
    caused = set(" ".join(re.findall(r"reason: (.*)", tests)).split())
    caused |= set(re.findall(r"INCSTACK__NOTE_(\w+)", tests))
    errors += [f"no test causes note {n}" for n in notes if n not in caused]
    print("\n".join(errors))
    sys.exit(bool(errors) or not notes or not ticks)


main()
