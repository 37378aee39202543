# SPDX-License-Identifier: MIT
"""The layers of src/ and profiler/: what a folder may use, and within a folder, which files lie lower.

An arrow runs from a file to each file that it includes, and to each file that defines a symbol
of ours which its object needs. No arrow may run to a folder that FOLDERS does not list, and none
upwards within STRATA. EXCEPTIONS are the arrows that may, each with its reason; one that no
longer exists is an error, too, so that the list only shrinks.

The folders of OUTSIDE are users of the installed library: they know public headers and public names.
"""
import collections
import fnmatch
import pathlib
import re
import subprocess
import sys

# The library, which a VM links, and the program, which uses it.
HOUSES = ("src", "profiler")

# The folders whose files a folder may include and call. Every folder may use include/: what
# is declared there (`incstack_x`, with one underscore) may be called from any folder.
FOLDERS = {
    "base": "",
    "elf": "",
    "heap": "",
    "arch": "base elf trace",
    "trace": "base elf arch",
    "safepoint": "base",
    "tracer": "",
    "mixed": "",
    "instrument": "base",
    "native": "elf",
    "profile": "base",
    "tracefile": "base elf",
    "recorder": "base elf tracefile native",
    "interpose": "base elf",
    "tool": "base elf tracefile",
}

# Files that a folder may include besides, each an interface made for that.
DOORS = {
    "native": "trace/shared.h trace/step.h",
    "recorder": "trace/shared.h interpose/preload.h",
    "tool": "native/image.h native/frame_pointer.h trace/step.h profile/analysis.h profile/files.h profile/nodes.h profile/reduce.h profile/timeline.h"
            " profile/curve.h profile/delta.h profile/filter.h",
    "interpose": "tracefile/format.h tracefile/notes.h tracefile/states.h",
}

# Within a folder, lowest first. A name is a file, with or without its suffix.
STRATA = {
    "heap": (
        "state heap_memory",
        "barriers heap_distance compact heap_compare",
        "capture heap_walk",
        "heap_sample report heap_retrieve",
        "heap_life_cycle",
    ),
    "trace": (
        "object runtime shared fault arena rule step memory signals arch/*",
        "stack kind barrier retired copied thunks mapped distance unwinder",
        "reset operation hooks verify queue",
        "unwind validate decode fast_walk top walk full_walk frames remembered",
        "sample barrier_hit retrieve stack_change mode aside signal",
        "kind_*",
        "life_cycle drain",
    ),
    "safepoint": (
        "safepoint.h safepoint_step wait split prompt",
        "word request run_operation",
        "poll thread safepoint.c",
        "start stop",
        "sampler",
    ),
    "instrument": (
        "clock copy.h mirrors.h meter.h reach.h links events",
        "mirrors copy calibrate",
        "reach",
        "subgraph meter",
        "snapshot adapt",
    ),
    "profile": (
        "ranking gzip wide pprof otlp analysis files nodes reduce delta.h filter.h cct.h timeline.h curve.h named_root pattern read/json_surrogates",
        "allocators intern bytes write/function_set write/json_write write/pprof_chains write/pprof_put write/writer write/flame_page write/packed",
        "extra meta module write/pprof_code write/otlp_dictionary pcct jit perf_map timeline.c curve.c visit",
        "cct losses read/reader read/unpack removal",
        "read/lines write/pprof_threads write/firefox_thread",
        "fold heap_tree mixed_tree meter_tree inside functions wrappers focus merge prune write/boxes write/page source recursion read/json_read read/json_profile"
        " read/pprof_fields read/pprof_tables.h read/foreign",
        "read/pprof_mappings read/pprof_meta",
        "read/pprof_tables.c",
        "compare delta.c look_through read/*_read write/*_write",
        "stability read/guess",
        "format",
    ),
    "recorder": (
        "system/*",
        "recording/*",
        "output/*",
        "code/*",
        "log/*",
        "threads/*",
        "events/*",
        "heap/*",
        "cpu/*",
        "start",
    ),
    "tracefile": (
        "*_format *.h cct identity curve shares states",
        "columns modules moment notes resident walks write resolved",
        "chunk pointers slots threads",
        "codec_events codec_objects",
        "codec.c",
        "pack unpack",
        "moment_read",
        "read spool_read",
        "replay_resident",
        "replay",
    ),
    "tool": (
        "foreign names printed",
        "option",
        "*.h jail/* report/folded_fit report/function_start report/jit_names report/texts report/demangle report/own_source report/symbol_table report/places report/groups output profile_options profile_text"
        " hottest progress profile/expansion profile/amount debuginfod package elide"
        " record/end record/lock record/nothing record/program report/sum proc module_file pages",
        "serve",
        "files",
        "scratch report/trace_map report/debug_file report/source_functions report/split_file",
        "report/source",
        "report/module_symbols",
        "report/module_tell",
        "record/run profile_io report/symbols",
        "suppressions.c",
        "filter.c",
        "report/context report/timeline report/curve report/resolve attach/process/*",
        "report/frames report/memory report/resident report/functions report/shares report/profile attach/kernel/* attach/output/*",
        "report/end report/pointers report/ticks attach/ticks attach/waits attach/heap",
        "report/text report/sections attach/recording report/json",
        "report/cpu report/heap",
        "report/form",
        "report/report report/run",
        "profile/run profile/input record/report",
        "profile/limits profile/difference profile/similarity",
        "profile/convert profile/compare.c profile/report",
        "record/record",
        "snapshot/look snapshot/write",
        "snapshot/snapshot.c",
        "attach/broker/*",
        "cpu heap resolve",
        "main",
    ),
    "interpose": (
        "*.h object",
        "search unloadable",
        "entries.c",
        "linker",
        "start",
        "context descriptor entries.S jump lookup malloc new process sandbox signals thread create unload",
        "waits/*",
    ),
    "native": (
        "native cfi.h frame_pointer.h image.h cfi_expression space",
        "cfi",
        "table",
        "base native_walk native_stack",
        "native_rule",
        "embedder context native_top frame_pointer.c interrupted",
        "image.c",
    ),
}

EXCEPTIONS = {
    # The trampoline enters the core, as the embedder does: it is on the way of a return.
    ("arch/x86_64/thunks.S", "trace/barrier_hit.c"): "the trampoline calls incstack__returned",
    ("arch/x86_64/pool.c", "trace/barrier_hit.c"): "a pool made at run time does so as well",
}

OUTSIDE = ("adapters/lua",)

# Files that define functions of libraries: of libc, and of libunwind.
STAND_INS = ("interpose/*", "recorder/code/libunwind.c", "tool/scratch.c", "tool/report/split_file.c")


def texts_of_product():
    """{path below its house: text}"""
    return {str(path.relative_to(house)): path.read_text(encoding="utf-8")
            for house in HOUSES for path in pathlib.Path(house).rglob("*") if path.suffix in (".c", ".h", ".S")}


def folder_of(name):
    return name.split("/")[0]


def place(name):
    """(the folder whose strata count, the stratum), or None where there are no strata."""
    folder = folder_of(name)
    stem = str(pathlib.PurePath(name).with_suffix("")).removeprefix(folder + "/")
    whole = name.removeprefix(folder + "/")
    if folder == "arch":
        folder, stem = "trace", name
    for number, names in enumerate(STRATA.get(folder, ())):
        if any(fnmatch.fnmatch(one, each) for each in names.split() for one in (stem, whole)):
            return folder, number
    return None


def includes_of(name, text):
    """The files of the product that a file includes: of its own folder, or by a path below its house."""
    for path in re.findall(r'^#\s*include "([^"]+)"', text, re.M):
        own = pathlib.PurePath(name).parent / path
        yield str(own), path


def include_arrows(texts):
    arrows = collections.defaultdict(set)
    for name, text in texts.items():
        for own, path in includes_of(name, text):
            target = own if own in texts else path
            if target not in texts:
                sys.exit(f"{name}: includes {path}, which is neither beside it nor below a house")
            arrows[name, target].add("includes it")
    return arrows


def parse(text):
    """nm --format=posix of objects: (object, name, type) of each external symbol."""
    member = ""
    for line in text.splitlines():
        if line.endswith(":"):
            member = line[:-1]
        elif len(fields := line.split()) >= 2:
            yield member, fields[0], fields[1]


def source_of(path, sources):
    """build/x/CMakeFiles/t.dir/src/trace/walk.c.o -> trace/walk.c"""
    name = re.split("/(?:" + "|".join(HOUSES) + ")/", path)[-1].removesuffix(".o")
    if name not in sources:
        sys.exit(f"{path}: of no file of the product")
    return name


def is_stand_in(name):
    return any(fnmatch.fnmatch(name, pattern) for pattern in STAND_INS)


def call_arrows(symbols):
    """From (file, symbol, type). What STAND_INS define is called in a library, except ours."""
    defined, arrows = collections.defaultdict(set), collections.defaultdict(set)
    symbols = list(symbols)
    for name, symbol, kind in symbols:
        if kind not in "Uwv" and (symbol.startswith("incstack_") or not is_stand_in(name)):
            defined[symbol].add(name)
    for name, symbol, kind in symbols:
        for target in defined[symbol] if kind in "Uwv" else ():
            if target != name:
                arrows[name, target].add(symbol)
    return arrows


def declared(text):
    """The functions that a header declares."""
    return set(re.findall(r"\b(incstack__\w+)\(", text))


def may(folder, target, why, doors):
    """Whether a file of the folder may use the other file, of another folder, for `why`."""
    if folder_of(target) in FOLDERS[folder].split() or target in doors:
        return True
    through = set().union(*doors.values())
    return all(re.match("incstack_[^_]", one) or one in through for one in why)


def errors_of(arrows, texts):
    doors = {folder: {door: declared(texts[door]) for door in names.split()}
             for folder, names in DOORS.items()}
    found, excused = [], set()
    for (name, target), why in sorted(arrows.items()):
        folder, text = folder_of(name), f"{name} -> {target}: {', '.join(sorted(why))}"
        low, high = place(name), place(target)
        if folder != folder_of(target) and not may(folder, target, why, doors.get(folder, {})):
            error = "is not listed in FOLDERS: " + text
        elif low and high and low[0] == high[0] and low[1] < high[1]:
            error = f"runs up from stratum {low[1]} to {high[1]}: {text}"
        else:
            continue
        if (name, target) in EXCEPTIONS:
            excused.add((name, target))
        else:
            found.append(error)
    return found + [f"EXCEPTIONS has {a} -> {b}, which is no exception"
                    for a, b in EXCEPTIONS if (a, b) not in excused]


def outside_errors(name, text, sources):
    """What a user of the library knows that only the library may know."""
    for path in re.findall(r'^#\s*include ["<]([^">]+)[">]', text, re.M):
        if path in sources:
            yield f"{name}: includes {path} of the product"
    for inside in sorted(set(re.findall(r"\bincstack__\w+", text))):
        yield f"{name}: uses {inside}, which is no public name"


def unplaced(names):
    for name in names:
        if folder_of(name) not in FOLDERS:
            yield f"{name}: FOLDERS does not know its folder"
        elif folder_of(name) in STRATA and not place(name):
            yield f"{name}: STRATA does not know it"


def main():
    nm, *objects = sys.argv[1:]
    texts = texts_of_product()
    out = subprocess.run([nm, "--format=posix", "--extern-only", *objects],
                         check=True, capture_output=True, text=True)
    symbols = [(source_of(path, texts), name, kind) for path, name, kind in parse(out.stdout)]
    arrows = include_arrows(texts)
    calls = call_arrows(symbols)
    for arrow, why in calls.items():
        arrows[arrow] |= why
    if not calls:
        sys.exit("no calls read; nothing was checked")
    errors = list(unplaced(texts)) + errors_of(arrows, texts)
    for path in (path for folder in OUTSIDE for path in pathlib.Path(folder).rglob("*.[ch]")):
        errors += outside_errors(str(path), path.read_text(encoding="utf-8"), texts)
    if errors:
        sys.exit("\n".join(errors))
    print(f"{len(texts)} files, {len(arrows)} arrows, {len(EXCEPTIONS)} exceptions")


if __name__ == "__main__":
    main()
