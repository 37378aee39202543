# SPDX-License-Identifier: MIT
"""What archives and objects define and what they need, read from nm.

  prefix     every external symbol starts with incstack_
  undefined  the core needs nothing but a short list of libc, and weak unwinder symbols
  portable   the part for frames on the heap needs nothing but what a compiler itself calls
  calls      the objects of tracing, which the trampoline runs, call nothing of libc but the
             allocator and system calls: even a memcpy that the compiler made would
             touch vector registers
"""
import re
import subprocess
import sys

# What the core may take from libc. An addition is a decision: it must be there in every
# process, and what a sample or the trampoline reaches must be safe in a signal handler.
LIBC = re.compile(
    r"^(mem(cpy|move|set|cmp|chr|mem)|str(len|cmp|ncmp|chr|rchr|nlen)|malloc|calloc|aligned_alloc|realloc|free"
    r"|mmap|munmap|mprotect|madvise|mremap|sysconf|getpagesize|getenv|secure_getenv"
    r"|qsort|sigfillset|pthread_(self|create|join|equal|once|mutex_\w+|sigmask|atfork)"
    r"|clock_gettime|dl_iterate_phdr|nanosleep|getrandom|prctl|gettid|syscall|arch_prctl|__errno_location"
    r"|__stack_chk_fail|__tls_get_addr|__(mem|str)\w+_chk|_GLOBAL_OFFSET_TABLE_)$")
PORTABLE = re.compile(r"^(mem(cpy|set|move|cmp)|_GLOBAL_OFFSET_TABLE_)$")
WEAK = re.compile(
    r"^(_Unwind_\w+|__(de)?register_frame(_info)?|__gcc_personality_v0|__cxa_\w+|_DYNAMIC|_dl_find_object)$")

# Allocation is outside samples and returns; the others leave vector registers alone.
CORE_CALLS = re.compile(r"^(malloc|free|mmap|munmap|mprotect|syscall|_GLOBAL_OFFSET_TABLE_)$")

# What no return reaches: making more thunks, creation, what samples choose; and asking for
# rules, before which all registers are saved.
OUTSIDE = ("pool.", "unwind_info.", "life_cycle.", "distance.", "rule.")


def parse(text):
    """nm --format=posix of archives or objects: (member, name, type) of each external symbol."""
    member = ""
    for line in text.splitlines():
        header = re.match(r"(?:.*\[(.*)\]|(\S+)):$", line)  # of GNU nm, of llvm-nm
        if header:
            member = (header.group(1) or header.group(2)).split("/")[-1]
            continue
        fields = line.split()
        if len(fields) >= 2:
            yield member, fields[0], fields[1]


def prefix_errors(symbols):
    return [f"{member}: {name} lacks the prefix incstack_" for member, name, kind in symbols
            if kind not in "Uwv" and not name.startswith("incstack_")
            # Made by .cfi_personality, hidden and comdat; the names that gdb looks for, weak.
            and not name.startswith(("DW.ref.", "__jit_debug_"))]


def portable_errors(symbols):
    symbols = list(symbols)
    defined = {name for _, name, kind in symbols if kind not in "Uwv"}
    return [f"{member}: needs {name}" for member, name, kind in symbols
            if kind in "Uwv" and name not in defined and not PORTABLE.match(name)]


def undefined_errors(symbols):
    symbols = list(symbols)
    defined = {name for _, name, kind in symbols if kind not in "Uwv"}
    errors = []
    for member, name, kind in symbols:
        if name in defined or kind not in "Uwv":
            continue
        allowed = LIBC if kind == "U" else WEAK
        if not allowed.match(name):
            how = "needs" if kind == "U" else "weakly needs"
            errors.append(f"{member}: {how} {name}, which is not on the list of symbols.py")
    return errors


def calls_errors(symbols):
    return [f"{member}: calls {name}" for member, name, kind in symbols
            if not member.startswith(OUTSIDE) and kind == "U"
            and not name.startswith("incstack_") and not CORE_CALLS.match(name)]


RULES = {"prefix": prefix_errors, "undefined": undefined_errors, "portable": portable_errors,
         "calls": calls_errors}


def main():
    nm, rule, *files = sys.argv[1:]
    out = subprocess.run([nm, "--format=posix", "--extern-only", *files],
                         check=True, capture_output=True, text=True)
    symbols = list(parse(out.stdout))
    if not symbols:
        sys.exit("no symbols read; nothing was checked")
    errors = RULES[rule](symbols)
    if errors:
        sys.exit("\n".join(errors))
    print(f"{len(symbols)} symbols, {rule} holds")


if __name__ == "__main__":
    main()
