# SPDX-License-Identifier: MIT
"""Inserts the lines of an adapter into the source tree of a program, and removes them.

Every change is an insertion, nothing of the tree is replaced. Each place is found by a few words
near it, which must occur exactly once there. Nothing is written unless all places look as expected.
An insertion into a tree that has it already changes nothing. A tool (TARGET/insert) lists the places.
"""
import os
import re
import shutil
import sys

OPEN, CLOSE = "/* incstack{ */", "/* }incstack */"


class Target:
    """A program: what its tree is called ("a JDK"), the folder of the tree that gets the files of the
    adapter, the places, and a function that refuses a tree of another version."""

    def __init__(self, called, folder, places, check_version):
        self.called, self.folder, self.places = called, folder, places
        self.check_version = check_version


class Refused(Exception):
    """What is wrong with the tree, for its user."""


class Place:
    """One insertion: into `path`, before or behind the match of `anchor`. If `within` is given,
    the match lies between that text and the end of its function. `without` is a text that must
    not occur there, because the insertion would do the same again. `first`: further matches
    do not matter."""

    def __init__(self, path, text, before=None, behind=None, within=None, without=None,
                 first=False):
        self.path, self.text = path, text
        self.anchor, self.is_before = (before, True) if before else (behind, False)
        self.within, self.without, self.first = within, without, first


def inline(code):
    return f"{OPEN} {code} {CLOSE} "


def line(code):
    return f"{OPEN}\n{code}\n{CLOSE}\n"


def region(text, place):
    """The part of the text in which the anchor must be found."""
    if not place.within:
        return 0, len(text)
    start = text.find(place.within)
    if start < 0 or text.find(place.within, start + 1) >= 0 and "(" in place.within:
        raise Refused(f"{place.path}: expected `{place.within}` once, "
                      f"saw it {text.count(place.within)} times")
    end = re.compile(r"^(\}|JRT_END)", re.M).search(text, start)
    return start, end.start() if end else len(text)


def position(text, place):
    low, high = region(text, place)
    found = list(re.finditer(place.anchor, text[low:high]))
    number = text.count("\n", 0, low) + 1
    where = f"{place.path}:{number}" + (f" ({place.within})" if place.within else "")
    if place.without and place.without in text[low:high]:
        raise Refused(f"{where}: already calls {place.without}")
    if not found or len(found) > 1 and not place.first:
        seen = text[low:high].strip().split("\n")[0][:60]
        raise Refused(f"{where}: expected /{place.anchor}/ once, saw it {len(found)} times "
                      f"behind `{seen}`")
    return low + (found[0].start() if place.is_before else found[0].end())


def read(tree, path, called):
    try:
        with open(os.path.join(tree, path), encoding="utf-8") as f:
            return f.read()
    except OSError as e:
        raise Refused(f"{path}: {e.strerror}; is {tree} {called} source tree?") from None


def write(tree, texts):
    """Replaces the files: all of them, or none if the new ones cannot be written. Each is replaced
    at once, so that an interruption leaves its old text or its new one."""
    names = {os.path.join(tree, path): text for path, text in texts.items()}
    for name, text in names.items():
        try:
            with open(name + ".incstack", "w", encoding="utf-8") as f:
                f.write(text)
            shutil.copymode(name, name + ".incstack")
        except OSError as e:
            for each in names:
                if os.path.exists(each + ".incstack"):
                    os.remove(each + ".incstack")
            raise Refused(f"{name}: {e.strerror}; nothing was changed") from None
    for name in names:
        os.replace(name + ".incstack", name)


def bare(text, path):
    """The text without our insertions."""
    text = re.sub(r"/\* incstack\{ \*/\n.*?\n/\* \}incstack \*/\n", "", text, flags=re.S)
    text = re.sub(r"# incstack\{\n.*?# \}incstack\n", "", text, flags=re.S)
    text = re.sub(r"/\* incstack\{ \*/ [^\n]*? /\* \}incstack \*/ ", "", text)
    for number, content in enumerate(text.split("\n"), 1):
        if "incstack" in content.lower():
            raise Refused(f"{path}:{number}: saw `{content.strip()[:60]}`, "
                          "which is not an insertion of this tool; unpack the tree again")
    return text


def with_hooks(text, places):
    spots = sorted(((position(text, p), -i, p) for i, p in enumerate(places)), reverse=True,
                   key=lambda spot: spot[:2])
    for at, _, place in spots:
        text = text[:at] + place.text + text[at:]
    return text


def plan(target, tree):
    """Returns for each file: its text now, without, and with the hooks."""
    target.check_version(tree)
    files = {}
    for path in dict.fromkeys(p.path for p in target.places):
        now = read(tree, path, target.called)
        without = bare(now, path)
        files[path] = (now, without,
                       with_hooks(without, [p for p in target.places if p.path == path]))
    return files


def copy_one(name, target):
    try:
        with open(name, "rb") as f:
            content = f.read()
        if os.path.exists(target):
            with open(target, "rb") as f:
                if f.read() == content:
                    return
        with open(target, "wb") as f:
            f.write(content)
    except OSError as e:
        raise Refused(f"{e.filename or target}: {e.strerror}") from None


def copy(folder, names):
    os.makedirs(folder, exist_ok=True)
    for left in set(os.listdir(folder)) - {os.path.basename(n) for n in names}:
        os.remove(os.path.join(folder, left))
    for name in names:
        copy_one(name, os.path.join(folder, os.path.basename(name)))


def insert(target, tree, texts, names):
    """Copies the files and inserts the hooks. If that fails, a folder that is new is removed again."""
    folder = os.path.join(tree, target.folder)
    is_new = not os.path.exists(folder)
    try:
        copy(folder, names)
        write(tree, texts)
    except (OSError, Refused):
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def state(files):
    if all(now == without for now, without, _ in files.values()):
        return "original"
    return "inserted" if all(now == hooked for now, _, hooked in files.values()) else "half"


def main(target, arguments):
    undo, ask = "--undo" in arguments, "--state" in arguments
    names = [a for a in arguments if a not in ("--undo", "--state")]
    if not names or any(n.startswith("-") for n in names):
        raise Refused("usage: insert [--undo | --state] TREE [FILE...]")
    tree, names = names[0], names[1:]
    files = plan(target, tree)
    if ask:
        print(state(files))
        return
    if not undo and state(files) == "half":
        raise Refused(f"{tree} has the insertions of another version of this tool, or only some; "
                      f"run `insert --undo {tree}` first")
    wanted = {path: without if undo else hooked for path, (_, without, hooked) in files.items()}
    texts = {path: text for path, text in wanted.items() if text != files[path][0]}
    if undo:
        write(tree, texts)
        shutil.rmtree(os.path.join(tree, target.folder), ignore_errors=True)
    else:
        insert(target, tree, texts, names)


def run(target):
    try:
        main(target, sys.argv[1:])
    except Refused as refusal:
        sys.exit(f"insert: {refusal}")
    except OSError as failure:
        sys.exit(f"insert: {failure.filename}: {failure.strerror}")
