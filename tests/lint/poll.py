# SPDX-License-Identifier: MIT
"""A poll is one load, one compare, one branch: the code that compilers make of it."""
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = """#include <incstack/safepoint.h>
void poll(struct incstack_thread *thread);
void poll(struct incstack_thread *thread)
{
	incstack_thread_poll(thread);
}
"""
OPTIONS = (("-O2",), ("-O3",), ("-O2", "-fPIC", "-fcf-protection"))


def fast_path(text):
    """The instructions of <poll> up to its first return, without padding."""
    path, inside = [], False
    for line in text.splitlines():
        if re.match(r"[0-9a-f]+ <poll>:", line):
            inside = True
        elif inside:
            fields = line.split("\t")
            code = " ".join(fields[1:]).split("#")[0].strip().replace(", ", ",")
            if code.startswith("ret"):
                return path
            if code and not re.match(r"nop|endbr64|xchg +%ax,%ax", code):
                path.append(code)
    return None


def poll_error(text):
    path = fast_path(text)
    if path is None:
        return "no function <poll> with a return"
    loads = sum("(%rdi)" in code for code in path)
    compares = sum(re.match(r"(test|cmp)[bwlq]? ", code) is not None for code in path)
    branches = sum(re.match(r"j(?!mp)", code) is not None for code in path)
    known = sum(re.match(r"(mov[lq]? +\(%rdi\),%r|(test|cmp)[bwlq]? |j(?!mp))", code) is not None
                for code in path)
    if (loads, compares, branches) == (1, 1, 1) and known == len(path):
        return None
    return f"not one load, one compare, one branch: {'; '.join(path)}"


def main():
    objdump, include, *compilers = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        source, made = pathlib.Path(folder, "poll.c"), pathlib.Path(folder, "poll.o")
        source.write_text(SOURCE, encoding="utf-8")
        for compiler in compilers:
            for options in OPTIONS:
                subprocess.run([compiler, *options, f"-I{include}", "-c", source, "-o", made],
                               check=True)
                out = subprocess.run([objdump, "-d", "--no-show-raw-insn", made],
                                     check=True, capture_output=True, text=True)
                error = poll_error(out.stdout)
                if error:
                    sys.exit(f"{compiler} {' '.join(options)}: {error}")
                print(compiler, *options, "|", "; ".join(fast_path(out.stdout)))


if __name__ == "__main__":
    main()
