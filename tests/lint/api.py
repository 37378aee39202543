# SPDX-License-Identifier: MIT
"""The reference of the public interface is complete: Doxygen warns of nothing, every constant
is described, and every function says who may call it, and whether it allocates or waits."""
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

PROMISES = ("Thread:", "Signal:", "Allocates:", "Blocks:")


def text(element, *names):
    """The description of a declaration without marks."""
    found = [element.find(name) for name in names]
    return " ".join("".join(part.itertext()) for part in found if part is not None).strip()


def member_errors(member):
    """What the description of a function or of the constants of an enum lacks."""
    name = member.findtext("name")
    description = text(member, "briefdescription", "detaileddescription")
    if member.get("kind") == "function":
        lacks = [promise for promise in PROMISES if promise not in description]
        return [f"{name}: the comment lacks {' '.join(lacks)}"] if lacks else []
    if not description:
        return [f"{name}: not described"]
    return [f"{value.findtext('name')}: not described" for value in member.findall("enumvalue")
            if not text(value, "briefdescription", "detaileddescription")]


def members(folder):
    for path in sorted(pathlib.Path(folder).glob("xml/*.xml")):
        yield from xml.etree.ElementTree.parse(path).iter("memberdef")


def main():
    doxygen = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path("docs/api/Doxyfile").read_text(encoding="utf-8")
        config += f"\nOUTPUT_DIRECTORY = {folder}\nGENERATE_HTML = NO\nGENERATE_XML = YES\n"
        run = subprocess.run([doxygen, "-"], input=config, capture_output=True, text=True)
        if run.returncode or run.stderr:
            sys.exit(run.stderr or f"doxygen ended with {run.returncode}")
        found = {member.get("id"): member for member in members(folder)}
    kinds = [member.get("kind") for member in found.values()]
    if kinds.count("function") < 80 or kinds.count("enum") < 10:
        sys.exit(f"only {kinds.count('function')} functions and {kinds.count('enum')} enums found")
    errors = [error for member in found.values() if member.get("kind") in ("function", "enum")
              for error in member_errors(member)]
    if errors:
        sys.exit("\n".join(errors))
    print(f"{kinds.count('function')} functions, {len(kinds)} members are described")


if __name__ == "__main__":
    main()
