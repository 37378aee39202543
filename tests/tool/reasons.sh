#!/bin/bash
# SPDX-License-Identifier: MIT
#
# reasons.sh TOOL TARGET NAME runs the function test_NAME in a new directory. Each function causes a loss or
# an end and checks that the reason which the user reads is the true one. `reason: NAME` names the notes
# of profiler/tracefile/notes.h that a function, or the test that is named behind it, causes.
set -euo pipefail
tool=$1 target=$2
plugins=$(realpath "$(dirname "$2")/../preload")

# shellcheck source=tests/tool/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

record() {
	status=0
	timeout 280 "$tool" heap --folded "$@" >stdout 2>stderr </dev/null || status=$?
	last=$(tail -n 1 stderr)
}

says() { grep -qE "$1" stderr || fail "does not say: $1"; }
says_not() { ! grep -qE "$1" stderr || fail "says: $1"; }

# reason: FILE_FULL FILE_QUOTA FILE_ERROR FILE_LIMIT
test_writes_refused() {
	local error text
	while read -r error text; do
		FULL_DISK_ERROR=$error LD_PRELOAD=$plugins/full_disk.so record -o trace -- "$target" alloc=50000
		equal "status after error $error" "$status" 0
		says "^ *note: $text"
		says 'traces are lost: recording had stopped'
		says_not 'did not end normally|no memory'
		equal "notes after error $error" "$(grep -c '^ *note: ' stderr)" 1
		[[ ! -e trace.live ]] || fail "the spool is still there"
	done <<-'END'
		28 the disk is full
		122 the trace file reached a disk quota
		5 the trace file could not be written \(an error of the file system\)
		27 the trace file reached the program's limit on file sizes
	END
}

# The trace file fits, the spool does not. reason: NO_SHARED_MEMORY
test_no_spool() {
	(
		ulimit -f 200 # of 1024 bytes
		record -o trace -- "$target" alloc=10
	)
	says '^ *note: memory that outlives the process, in a file beside the trace file'
	[[ ! -e trace.live ]] || fail "an empty spool is left"
}

# The program takes every descriptor, the recorder's by dup2. reason: NO_DESCRIPTOR
test_no_descriptor() {
	cat >takes.py <<-'END'
		import os, resource
		resource.setrlimit(resource.RLIMIT_NOFILE, (120, 120))
		for fd in range(3, 120):
		    os.dup2(0, fd)
		print("ok")
	END
	(
		ulimit -n 120
		record -o trace -- python3 -S takes.py
		equal output "$(cat stdout)" ok
		equal status "$status" 0
	)
	says '^ *note: the program took the trace file.s descriptor and left none free'
	says_not 'did not end normally|disk|no memory'
}

# It cannot be opened again if it is gone. reason: FILE_CLOSED
test_file_removed() {
	cat >removes.py <<-'END'
		import ctypes, os
		os.unlink("trace")
		libc = ctypes.CDLL(None)
		for fd in range(3, 2000):
		    libc.syscall(3, fd)
		os.write(1, b"ok")
	END
	record -o trace -- sh -c "exec python3 -S removes.py"
	equal output "$(cat stdout)" ok
	rm -f trace*
	cat >closes.py <<-'END'
		import ctypes, os
		os.rename("trace", "moved")
		libc = ctypes.CDLL(None)
		for fd in range(3, 2000):
		    libc.syscall(3, fd)
		os.write(1, b"ok")
	END
	record -o trace -- python3 -S closes.py
	equal output "$(cat stdout)" ok
	"$tool" report moved >stdout 2>stderr || true
	cat stdout >>stderr
	says '^ *note: the program closed the trace file, and it could not be opened again'
}

# Whatever the limit is, either all is recorded, or the report says what is missing and why.
# reason: NO_RECORDER NOT_STARTED NO_MEMORY UNRECORDED_MEMORY
test_memory_limits() {
	local limit dropped seen="" allocations=5000
	for limit in {2750..9000..250}; do
		rm -f trace*
		# shellcheck disable=SC2016
		record -o trace -- sh -c 'ulimit -v "$1"; exec "$0" alloc="$2"' "$target" "$limit" \
			"$allocations"
		grep -q 'could not load the recorder' stderr && seen+=" load"
		grep -q 'got no memory' stderr && seen+=" memory"
		dropped=$(sed -nE 's/^ *warning: ([0-9]+) allocations and .*/\1/p' stderr)
		(($(value traces) + $(value lost) + ${dropped:-0} / 2 >= allocations)) ||
			grep -qE 'note: .*(nothing|not) (was )?recorded' stderr ||
			fail "limit $limit: dropped=${dropped:-0} $last"
	done
	[[ $seen == *load* && $seen == *memory* ]] || fail "only:$seen"
}

# reason: NEXT_UNRECORDED
test_next_unrecorded() {
	record -o trace -- sh -c 'unset LD_PRELOAD; exec true'
	equal status "$status" 0
	says '^ *note: the program that was executed last was not recorded'
	"$tool" report --folded trace >again 2>&1
	grep -q '^note: the program that was executed last was not recorded' again ||
		fail "not in the file"
	record -o trace -- sh -c 'exec true'
	says_not 'was not recorded'
	record -o trace -- sh -c 'exec ./no_such' # sh goes on
	says_not 'was not recorded'
}

# reason: UNRECORDED_LIMIT
test_next_has_limit() {
	# shellcheck disable=SC2016
	record -o trace -- bash -c 'ulimit -f 4; exec "$0" alloc=10' "$target"
	equal status "$status" 0
	says 'could not be recorded: its limit on file'
}

# reason: UNRECORDED_RIGHTS
test_next_has_no_rights() {
	((EUID == 0)) || return 0
	chmod 755 .
	record -o trace -- setpriv --reuid=65534 --clear-groups "$target"
	equal status "$status" 0
	says 'could not be recorded: it may not write'
}

# reason: NO_LIBUNWIND
test_no_libunwind() {
	LD_PRELOAD=$plugins/no_libunwind.so record -o trace --crosscheck -- "$target" alloc=10
	equal status "$status" 0
	says '^ *note: --crosscheck needs libunwind-x86_64.so.8'
	says_not 'no memory|own allocator|not end normally'
}

# Programs of tests/preload. reason: STACK_COPIED MANY_STALE STACK_MAPS UNKNOWN_STACKS OWN_MALLOC
# reason: SMALL_STACK FOREIGN_UNWINDER NO_TSC UNLOADED
test_programs() {
	local program text
	while read -r program text; do
		record -o trace -- "$plugins/stacks_$program" "$plugins"
		equal "status of $program" "$status" 0
		says "^ *note: $text"
	done <<-'END'
		callcc the program has a runtime that copies stacks
		copied frames that had vanished came back
		managed the program's garbage collector reads return addresses
		strange the program also runs on stacks with unknown bounds
		own_malloc the program itself defines malloc
		small a stack was nearly used up or is smaller than 6 KiB
		static_unwinder the program or a library has an unwinder of its own
		no_clock the program forbade the time-stamp counter
		unload_silent code was unloaded without notice
	END
}

# The library watches no call, so nothing else changes. reason: AUDITED
test_audited() {
	LD_AUDIT=$plugins/audits.so record -o trace -- "$target" alloc=10
	equal status "$status" 0
	says '^ *note: LD_AUDIT is set'
	record -o trace -- "$target" alloc=10
	says_not 'LD_AUDIT'
}

# reason: NO_TIMER
test_no_timer() {
	(
		ulimit -i 0
		"$tool" cpu --folded -o trace -- "$target" alloc=10 >stdout 2>stderr </dev/null
	)
	says '^ *note: a thread could not have a timer'
}

# The other tests that cause a note. reason: SHADOW_STACK (heap_obstacles.sh, shadow_stack)
# reason: OWN_NEW SPECIAL_ALLOCATOR (heap_counts.sh) ATTACHED NEW_NOT_FOLLOWED (attach_heap.sh)
# reason: WALL (attach_wall.sh) OUTSIDE (attach.sh)
test_dies_early() {
	LD_PRELOAD=$plugins/dies_early.so record -o trace -- "$target" alloc=10
	equal status "$status" 139
	says 'nothing was recorded into .*: signal 11 .*before its recording began, in a constructor'
}

# A program whose loader is that of musl, and a script for it.
test_other_libc() {
	python3 - "$target" <<-'END'
		import sys
		program = open(sys.argv[1], "rb").read()
		loader = b"/lib64/ld-linux-x86-64.so.2"
		assert program.count(loader) >= 1
		other = b"/lib/ld-musl-x86_64.so.1".ljust(len(loader), b"\0")
		open("other", "wb").write(program.replace(loader, other))
	END
	chmod +x other
	printf '#! %s/other arg\n' "$PWD" >script && chmod +x script
	for program in ./other ./script; do
		record -o trace -- "$program"
		equal status "$status" 126
		says 'cannot profile .*other: its C library is not glibc'
		equal lines "$(wc -l <stderr)" 1
	done
}

# The kernel's reason is enough.
test_not_executed() {
	printf '#! /no/such/interpreter\n' >script && chmod +x script
	record -o trace -- ./script
	equal status "$status" 127
	says 'cannot run ./script: No such file or directory'
	says_not 'nothing was recorded'
}

# A handler allocates at each instruction of returns that are intercepted. Each of its allocations counts.
test_handlers_in_returns() {
	local lost
	record --mode patch -o trace -- "$plugins/stacks_stepped"
	equal status "$status" 0
	lost=$(sed -n 's/^warning: \([0-9]*\) traces of allocations in signal handlers are lost: the signal came while the recorder handled a return of the program$/\1/p' stderr)
	[[ ${lost:-0} -gt 0 ]] || fail "no handler interrupted a return"
	equal lost "$(value lost)" "$lost"
	# printf has one of its own.
	equal calls $(($(value traces) + lost)) $(($(sed -n 's/^mallocs //p' stdout) + 1))
	says_not '^ *note: '
	says_not 'traces are lost'
}

test_validate_is_slow_in_deep_stacks() {
	record --mode validate -o trace -- "$target" deep=20002
	equal status "$status" 0
	says '^note: mode validate compared some 1000[0-9] frames for each trace, which made the recording slow$'
	record --mode validate -o trace -- "$target" deep=19900
	says_not 'compared some'
	record -o trace -- "$target" deep=20002
	says_not 'compared some'
}

test_ended_by_a_call() {
	record -o trace -- python3 -S -c 'import ctypes; ctypes.CDLL(None).syscall(231, 3)'
	equal status "$status" 3
	says_not 'did not end normally'
	says 'recovered: the program ended by a system call of its own'
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
