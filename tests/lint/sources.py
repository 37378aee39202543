# SPDX-License-Identifier: MIT
"""The rules for source files, over the files that git would commit.

  spdx             the licence is named at the top
  opening          a file says its job behind the licence, a folder of the product in its README.md
  twins            no two files of src/ have one name
  dialect          null tests are `!p`, and atomics are those of C11
  file-length      at most 500 lines, also in scripts
  function-length  at most 80 lines
  headers          every public header compiles alone as C11, C2x and C++17
  format           clang-format changes nothing
"""
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

FILE_LINES = 500
FUNCTION_LINES = 80
CODE = (".c", ".h", ".cpp", ".hpp", ".cc", ".S")
SHELLS = (".sh", ".bash", ".zsh", ".fish")
FORMATTED = (".c", ".h", ".cpp", ".hpp", ".cc")
# Where a pointer is a truth value, and where no GNU atomics are.
NULL_TESTED = ("src/", "profiler/recorder/", "profiler/interpose/", "profiler/tool/attach/")
ATOMIC = ("profiler/", "src/arch/", "src/safepoint/", "src/profile/", "src/heap/")
# Public headers align their field comments by hand, which clang-format never leaves alone.
UNFORMATTED = "include/"
DIALECTS = (("c", "c11"), ("c", "c2x"), ("c++", "c++17"))


def all_files():
    """Tracked and new files that are not ignored; everything when there is no git."""
    git = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"],
                         capture_output=True, text=True)
    if git.returncode == 0:
        found = git.stdout.splitlines()
    else:
        found = [str(path) for path in pathlib.Path(".").rglob("*") if "build" not in path.parts]
    return sorted(name for name in found if pathlib.Path(name).is_file())


def files(suffixes):
    found = [name for name in all_files() if name.endswith(suffixes)]
    if not found:
        sys.exit("no source files found; nothing was checked")
    return found


def scripts():
    """Files with the suffix of a shell, and those whose first line names an interpreter."""
    found = []
    for name in all_files():
        with open(name, "rb") as file:
            if name.endswith(SHELLS) or file.read(2) == b"#!":
                found.append(name)
    return found


def read(name):
    return pathlib.Path(name).read_text(encoding="utf-8")


def spdx_error(text):
    top = "\n".join(text.splitlines()[:3])
    return None if "SPDX-License-Identifier: " in top else "no SPDX line at the top"


def opening_error(text):
    """The comment with the licence, or the docstring behind it, says what the file is for."""
    text = re.sub(r"^#!.*\n", "", text)
    opening = re.match(r'/\*[\s\S]*?\*/|(?://.*\n)+|(?:#.*\n)*(?:"""[\s\S]*?""")?', text).group(0)
    words = re.findall(r"[A-Za-z]{2,}", re.sub(r"SPDX-License-Identifier.*", "", opening))
    return None if len(words) >= 2 else "does not say what it is for behind the licence"


def function_lengths(text):
    """(line, lines) of each function. The format check makes this exact: a body opens
    with a brace alone in column 0 and is closed by the next brace in column 0."""
    lines = text.splitlines()
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
            while start > 0 and lines[start - 1] and not re.match(r"[}#/]|.*[;:]$|.*\*/$",
                                                                  lines[start - 1]):
                start -= 1
        elif line.startswith("}") and start is not None:
            yield start + 1, number - start + 1
            start = None


def check_spdx():
    return [f"{name}: {error}" for name in files(CODE + (".py", ".cmake", "CMakeLists.txt"))
            if (error := spdx_error(read(name)))]


def check_opening():
    errors = [f"{name}: {error}" for name in files(CODE + (".py",))
              if (error := opening_error(read(name)))]
    folders = sorted({str(pathlib.PurePath(name).parent) for name in files(CODE)
                      if name.startswith(("src/", "profiler/"))})
    return errors + [f"{folder}: no README.md says what it is" for folder in folders
                     if not pathlib.Path(folder, "README.md").is_file()]


def check_file_length():
    names = sorted({*files(CODE + (".py", ".java", ".pml")), *scripts()})
    counts = [(name, len(read(name).splitlines())) for name in names]
    return [f"{name}: {count} lines, more than {FILE_LINES}" for name, count in counts
            if count > FILE_LINES]


def check_function_length():
    errors, all_lengths = [], []
    for name in files(FORMATTED):
        for line, length in function_lengths(read(name)):
            all_lengths.append(length)
            if length > FUNCTION_LINES:
                errors.append(f"{name}:{line}: {length} lines, more than {FUNCTION_LINES}")
    if not all_lengths:
        return ["no function found; nothing was checked"]
    print(f"{len(all_lengths)} functions, median {statistics.median(all_lengths)} lines, "
          f"longest {max(all_lengths)}")
    return errors


def compile_error(compiler, text, *flags):
    """What the compiler says against a source text, or None."""
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        source.write(text)
        source.flush()
        result = subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-Werror",
                                 "-fsyntax-only", "-Iinclude", source.name],
                                capture_output=True, text=True)
    return result.stderr if result.returncode != 0 else None


def check_headers(cc, cxx):
    errors = []
    for header in sorted(pathlib.Path("include/incstack").rglob("*.h")):
        for language, standard in DIALECTS:
            text = (f"#include <{header.relative_to('include')}>\n"
                    "extern int incstack_lint;\n")  # version.h has only macros
            error = compile_error(cc if language == "c" else cxx, text,
                                  "-x", language, f"-std={standard}", "-Wpedantic")
            if error:
                errors.append(f"{header} as {standard}:\n{error}")
    return errors


def check_format(clang_format):
    names = [name for name in files(FORMATTED) if not name.startswith(UNFORMATTED)]
    result = subprocess.run([clang_format, "--dry-run", "--Werror", *names],
                            capture_output=True, text=True)
    return [result.stderr + "scripts/format repairs this"] if result.returncode != 0 else []


def twins(names):
    """Two files of one name look alike in a backtrace and in a report of coverage."""
    places = {}
    for name in names:
        places.setdefault(pathlib.PurePath(name).name, []).append(name)
    return [f"{' and '.join(sorted(found))}: two files of one name" for _, found in sorted(places.items())
            if len(found) > 1]


def check_twins():
    return twins(name for name in files(CODE) if name.startswith("src/"))


def dialect_errors(name, text):
    for number, line in enumerate(text.splitlines(), 1):
        if name.startswith(NULL_TESTED) and re.search(r"== NULL\b", line):
            yield f"{name}:{number}: write !p in place of p == NULL"
        if name.startswith(ATOMIC) and re.search(r"\b(__atomic_|__sync_)\w+\(", line):
            yield f"{name}:{number}: use an atomic of C11"


def check_dialect():
    return [error for name in files((".c", ".h")) for error in dialect_errors(name, read(name))]


CHECKS = {"twins": check_twins, "dialect": check_dialect, "spdx": check_spdx, "opening": check_opening, "file-length": check_file_length,
          "function-length": check_function_length, "headers": check_headers,
          "format": check_format}


def main():
    errors = CHECKS[sys.argv[1]](*sys.argv[2:])
    if errors:
        sys.exit("\n".join(errors))


if __name__ == "__main__":
    main()
