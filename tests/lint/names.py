# SPDX-License-Identifier: MIT
"""Names that others choose reach the terminal only through profiler/tool/names.c.

Each `%s` of a call that prints to a stream must get a literal, the result of a function of PLAIN, or a name of
KNOWN, whose text is ours. Likewise what fputs prints, and no tool code prints bytes by fwrite,
but the writer of JSON, whose library escapes what it is given.
"""
import pathlib
import re
import sys

# Functions whose result is ours, or was made printable.
PLAIN = ("tool_name", "tool_amount", "strerror", "incstack_error_text", "shown_path", "tool_mode_name", "strsignal",
         "incstack__tracefile_note_text", "sigdescr_np", "number", "reason_of", "title_of",
         "signed_amount", "novelty", "amount_of", "incstack__state_name")
# In each file, variables and members that only have texts of ours.
KNOWN = {
    "*": "text before what why reason help verb message after",
    "attach/recording.c": "a->technique->doing a->technique->done a->technique->unit",
    "record/run.c": "name",  # of our library
    "jail/enter.c": "jail->what",  # made printable by files.c
    "jail/jail.c": "jail->what",
    "serve.c": "path",
    "profile_options.c": "o->name where",
    "main.c": "help",
    "profile/compare.c": "compare_help",
    "profile/convert.c": "convert_help merge_help",
    "profile/limits.c": "grown",
    "filter.c": "prefix",
    "profile/report.c": "report_help",
    "report/end.c": "how name report->form->event",
    "report/cpu.c": "used clock",
    "profile_io.c": "full",
    "report/functions.c": "columns->all[i].title",
    "report/heap.c": "bytes live peak",
    "report/sections.c": "section->title",
    "report/ticks.c": "report->form->expected",
    "report/memory.c": "hint",
    "report/shares.c": "to bar report->form->weight report->form->calls",
    "report/module_tell.c": "module->why",
    "report/report.c": "problem.what",
    "report/text.c": "metric->title title problem.what report->form->dropped",
    "record/record.c": "options->command",
    "names.c": "dots c->escape",
}


def close(text, at):
    """The index behind the parenthesis that closes the one before `at`."""
    depth, quote = 1, None
    while depth:
        c = text[at]
        if quote:
            at += c == "\\"
            quote = None if c == quote else quote
        elif c in "\"'":
            quote = c
        else:
            depth += (c == "(") - (c == ")")
        at += 1
    return at


def arguments(text):
    """Splits at the commas that are in no parentheses and no literals."""
    found, depth = [""], 0
    for part in re.findall(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|.', text, re.S):
        depth += (part in "([{") - (part in ")]}")
        if part == "," and not depth:
            found.append("")
        else:
            found[-1] += part
    return [" ".join(one.split()) for one in found]


def is_plain(argument, known):
    """Whether it is, whatever a conditional in it yields."""
    parts = re.split(r"[?:]", re.sub(r'"(?:\\.|[^"\\])*"', '""', argument))
    results = parts[1:] if len(parts) > 1 else parts
    for one in (part.strip() for part in results):
        if one in known or re.match(r"\(?(%s)\(" % "|".join(PLAIN), one):
            continue
        if re.fullmatch(r'(""|[A-Z_]+| )*', one.strip("()")):
            continue
        return False
    return True


def conversions(template):
    """The conversions of a format, of which PRI macros stand between the literals."""
    text = "".join(part[1:-1] if part[0] == '"' else "d"
                   for part in re.findall(r'"(?:\\.|[^"\\])*"|\w+', template))
    for found in re.finditer(r"%%|%[-+ #0]*(\*|\d+)?(\.(\*|\d+)?)?[hlzjt]*([a-zA-Z])", text):
        if found[0] != "%%":
            yield from ["*"] * found[0].count("*")
            yield found[4]


def check(name, text):
    known = set((KNOWN["*"] + " " + KNOWN.get(name, "")).split())
    for call in re.finditer(r"\b(fprintf|printf|fputs|fwrite|puts)\(", text):
        line = text.count("\n", 0, call.start()) + 1
        given = arguments(text[call.end():close(text, call.end()) - 1])
        where = f"profiler/tool/{name}:{line}"
        if call[1] == "fwrite" and name not in ("names.c", "report/json.c", "report/resolve.c"):
            yield f"{where}: prints bytes; use tool_name_put"
        if call[1] in ("fputs", "puts") and not is_plain(given[0], known):
            yield f"{where}: prints {given[0]}; use tool_name_put or tool_name_clip"
        if "printf" in call[1]:
            given = given[call[1] == "fprintf":]
            for kind, one in zip(conversions(given[0]), given[1:]):
                if kind == "s" and not is_plain(one, known):
                    yield f"{where}: prints {one}; use tool_name, or list it as ours"


def main():
    root = pathlib.Path("profiler/tool")
    errors, count = [], 0
    for path in sorted(root.rglob("*.c")):
        count += 1
        errors += check(str(path.relative_to(root)), path.read_text(encoding="utf-8"))
    if errors:
        sys.exit("\n".join(errors))
    print(f"{count} files")


if __name__ == "__main__":
    main()
