#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints a public header for Doxygen. The headers have plain C comments. This filter marks
those that describe a declaration, so that Doxygen's marks need not be written by hand."""
import pathlib
import re
import sys

SECTION = re.compile(r"-{4,} (.+?) -{4,}\n?(.*)", re.S)  # /* ---- title ---- and text */
PARAGRAPH = re.compile(r"(Errors|Algorithm|Thread|Allocates):")  # these begin a paragraph


def escaped(text):
    """The text without characters that Doxygen interprets, `code` excepted."""
    text = re.sub(r"([\\@<>&#%])", r"\\\1", text)
    return re.sub(r"`([^`]+)`", r"<tt>\1</tt>", text)


def body(comment):
    """The lines between the marks of a comment, without the stars in front."""
    lines = comment[2:-2].strip().split("\n")
    return lines[:1] + [re.sub(r"^\s*\* ?", "", line) for line in lines[1:]]


def described(lines):
    """The text of a description. Lines that are indented are shown as they are."""
    out, shown = [], False
    for line in lines:
        indented = line.startswith("  ")
        if indented != shown:
            out.append("@verbatim" if indented else "@endverbatim")
            shown = indented
        if not indented and PARAGRAPH.match(line) and out:
            out.append("")
        out.append(line if indented else escaped(line))
    return out + (["@endverbatim"] if shown else [])


class Header:
    """Replaces the comments of one header, in order."""

    def __init__(self, text, name):
        self.text, self.name = text, name
        self.first, self.in_section = True, False

    def replace(self, match):
        comment = match.group(0)
        before = self.text[:match.start()]
        lines = body(comment)
        if self.first:
            self.first = False
            return "\n".join([f"/** @file {self.name}", *described(lines[1:]), "*/"])
        if before.count("\n{\n") > before.count("\n}\n"):
            return comment  # in the body of a function
        section = SECTION.match("\n".join(lines))
        if section:
            end = "/** @} */" if self.in_section else ""
            self.in_section = True
            title, text = escaped(section.group(1)), section.group(2).split("\n")
            return "\n".join([end, f"/** @name {title}", *described(text), "@{ */"])
        mark = "/**< " if before.rsplit("\n", 1)[-1].strip() else "/** "
        return mark + "\n".join(described(lines)) + "\n*/"

    def filtered(self):
        text = re.sub(r"/\*.*?\*/", self.replace, self.text, flags=re.S)
        if self.in_section:
            text = text.replace("\nINCSTACK_END_C\n", "\n/** @} */\nINCSTACK_END_C\n")
        return text


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1])
    sys.stdout.write(Header(path.read_text(encoding="utf-8"), path.name).filtered())
