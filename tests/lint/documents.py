# SPDX-License-Identifier: MIT
"""What documents and comments cite is in the repository: links, names of documents, and paths that
begin with a folder of the project. NAME in a path stands for any name. Documents name only functions
and constants that some source has. Nothing cites a file of somebody's machine."""
import pathlib
import re
import subprocess
import sys

FOLDERS = ("adapters", "bench", "cmake", "completions", "docs", "examples", "include", "man",
           "profiler", "scripts", "src", "tests")
# A path below one of them. What stands before it must not be part of another path.
PATH = re.compile(r"(?<![\w/.$}>%~*+-])((?:" + "|".join(FOLDERS) + r")/[\w./*-]*[\w*])")
DOCUMENT = re.compile(r"(?<![\w/.-])((?:\.\./)*[\w/-]+\.md)\b")
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)")
OUTSIDE = re.compile(r"(?<![\w.])/(?:home|root|work|Users)/[\w.-]+")
IDENTIFIER = re.compile(r"\b(?:incstack_[a-z_0-9]+|INCSTACK_[A-Z_0-9]+)")
THEIRS = "src/hotspot/"  # of a JDK's source tree

COMMENTS = {
    "c": re.compile(r"/\*.*?\*/|//[^\n]*", re.S),
    "script": re.compile(r"^\s*#[^\n]*|\s#\s[^\n]*", re.M),
}
LANGUAGES = {".c": "c", ".h": "c", ".cpp": "c", ".hpp": "c", ".S": "c", ".java": "c",
             ".py": "script", ".txt": "script", ".cmake": "script", "": "script"}


def prose(name, text):
    """The text with everything blanked that is neither a document nor a comment."""
    language = LANGUAGES.get(pathlib.PurePath(name).suffix)
    if name.endswith((".md", ".dox", ".1")):
        return text
    if language is None:
        return ""
    blank, end = [], 0
    for match in COMMENTS[language].finditer(text):
        blank += ["\n" * text.count("\n", end, match.start()), match.group(0)]
        end = match.end()
    return "".join(blank)


def found(root, name, cited):
    """Whether a path or pattern names something, as seen from the file's folder or above."""
    pattern = cited.replace("NAME", "*")
    for folder in pathlib.PurePath(name).parents:
        start = (root / folder / pattern).parent
        last = pathlib.PurePath(pattern).name
        if not start.resolve().is_relative_to(root.resolve()):
            continue
        if (start / last).exists() or any(start.glob(last)) or any(start.glob(last + ".*")):
            return True
    return False


def citations(name, text):
    """(line, what is cited) for each citation of a file."""
    patterns = (PATH, DOCUMENT, LINK) if name.endswith(".md") else (PATH, DOCUMENT)
    for number, line in enumerate(prose(name, text).split("\n"), 1):
        for pattern in patterns:
            for match in pattern.finditer(line):
                if not match.group(1).startswith(THEIRS):
                    yield number, match.group(1)


def errors_of(root, name, text):
    """What a file cites and nobody else has, or nobody finds."""
    outside = [f"{name}:{number}: cites {match.group(0)}, a file of one machine"
               for number, line in enumerate(text.split("\n"), 1)
               for match in OUTSIDE.finditer(line)]
    missing = [f"{name}:{number}: cites {cited}, which does not exist"
               for number, cited in citations(name, text) if not found(root, name, cited)]
    return outside + missing


def unknown_names(known):
    """What documents call a function, constant or variable, and no other file has. A name may be
    the beginning of several."""
    have = set()
    for name, text in known.items():
        if not name.endswith((".md", ".1")):
            have.update(IDENTIFIER.findall(text))
    for name, text in known.items():
        if name.endswith((".md", ".1")):
            for number, line in enumerate(text.split("\n"), 1):
                for used in IDENTIFIER.findall(line):
                    if not any(one.startswith(used) for one in have):
                        yield f"{name}:{number}: names {used}, which does not exist"


def texts():
    git = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"],
                         capture_output=True, text=True, check=True)
    for name in git.stdout.splitlines():
        # The lint's own files have examples of what they refuse.
        if "/corpus/" in name or name.startswith("tests/lint/") or not pathlib.Path(name).is_file():
            continue
        try:
            yield name, pathlib.Path(name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def main():
    root = pathlib.Path(".")
    known = dict(texts())
    count = sum(1 for name, text in known.items() for _ in citations(name, text))
    if count < 100:
        sys.exit(f"only {count} citations found; nothing was checked")
    errors = {error for name, text in known.items() for error in errors_of(root, name, text)}
    errors.update(unknown_names(known))
    if errors:
        sys.exit("\n".join(sorted(errors)))
    print(f"{count} citations")


if __name__ == "__main__":
    main()
