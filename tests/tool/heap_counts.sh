#!/bin/bash
# SPDX-License-Identifier: MIT
#
# heap_counts.sh TOOL TARGET NAME runs the function test_NAME in a new directory. Each counts what the trace
# has of allocations whose number is known.
set -euo pipefail
tool=$1 target=$2

# shellcheck source=tests/tool/heap_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/heap_common.sh"

# What a thread has counted is in the file when its traces are, however it ends.
test_counters_are_exact() {
	local base mode walker
	base=$(bare)
	for mode in patch validate full own/patch own/validate own/full; do
		walker=libunwind
		[[ $mode != */* ]] || walker=${mode%/*}
		mode=${mode#*/}
		record -o trace "--crosscheck=$walker" --mode "$mode" -- "$target" threads=8:5000 \
			alloc=1000
		equal status "$status" 0
		# Each pthread_create allocates once.
		equal traces "$(value traces)" $((base + 8 * 5001 + 1000))
		equal crosschecked "$(value crosschecked)" "$(value traces)"
		equal mismatches "$(value mismatches)" 0
		equal lost "$(value lost)" 0
		equal truncated "$(value truncated)" 0
		equal stale "$(value stale)" 0
		equal mode "$(value mode)" "$mode"
	done
	# Of each thread the first trace, and every 997th from there.
	[[ $(<stderr) == *" full walks, $((8 * 6 + 2)) of them by libunwind; 0 differ"* ]] ||
		fail "not as many by libunwind"
	equal returns "$(value returns)" 0
	INCSTACK_MODE=validate record -o trace -- "$target" alloc=10 # the kill switch
	equal mode "$(value mode)" validate
}

# The program's process has libunwind only if it is needed.
test_libunwind_for_crosscheck() {
	local walker
	record -o trace -- grep -q libunwind /proc/self/maps
	equal status "$status" 1
	for walker in libunwind own; do
		record -o trace "--crosscheck=$walker" -- grep -q libunwind /proc/self/maps
		equal status "$status" 0
		equal mismatches "$(value mismatches)" 0
		equal crosschecked "$(value crosschecked)" "$(value traces)"
	done
}

# Threads that stay are asked for their traces when the process ends.
test_threads_that_stay() {
	local base
	base=$(bare)
	record -o trace --crosscheck -- "$target" stay=5:100
	equal status "$status" 0
	equal traces "$(value traces)" $((base + 5 * 101))
	equal crosschecked "$(value crosschecked)" "$(value traces)"
	equal lost "$(value lost)" 0
	record -o trace -- "$target" stay=5:100 _exit
	equal traces "$(value traces)" $((base + 5 * 101))
	equal lost "$(value lost)" 0
}

# A thread that ended keeps no memory: crosschecked, each has some 20 MiB of addresses.
test_threads_that_ended() {
	local many=()
	for _ in {1..50}; do many+=(threads=8:10); done
	(ulimit -v $((3 << 20)) && exec "$tool" heap --folded -o trace --crosscheck -- "$target" "${many[@]}") \
		>stdout 2>stderr </dev/null || fail "status $?"
	last=$(tail -n 1 stderr)
	[[ $(value traces) -ge $((50 * 8 * 10)) ]] || fail "traces $(value traces)"
	equal lost "$(value lost)" 0
	equal crosschecked "$(value crosschecked)" "$(value traces)"
}

# Threads that do not hear the request keep what they have not written, which is counted.
test_deaf_threads() {
	local base
	base=$(bare)
	record -o trace -- "$target" stay=2:100 deaf=3:100
	equal status "$status" 0
	# They could not be stopped: what they had not written was in the spool.
	equal traces "$(value traces)" $((base + 2 * 101 + 3 * 101))
	equal lost "$(value lost)" 0
	equal truncated "$(value truncated)" 0
	! grep -q 'did not end normally' stderr || fail "it did"
	[[ ! -e trace.live ]] || fail "the spool is still there"
}

# The frame of the caller is found by the frame pointer, also for an event that finds no room.
test_frame_pointer() {
	local base
	base=$(bare)
	record -o trace -- "$target" variable=1000000
	equal status "$status" 0
	equal traces "$(value traces)" $((base + 2000000))
	equal truncated "$(value truncated)" 0
	equal "contexts of realloc" "$(grep -c ';resize_one ' trace.folded)" 1
}

# A batch has all frames of the stack. So there are few batches where the stack is deep, and
# a kill loses none of their events.
test_deep_stack() {
	local base bytes
	base=$(bare)
	record -o trace -- "$target" below=60000:100000
	bytes=$(folded alloc_blocks)
	equal traces "$(value traces)" $((base + 100000))
	[[ $(stat -c %s trace) -lt 5000000 ]] || fail "$(ls -l trace)"
	record -o trace -- "$target" below=60000:100000 alloc=10 below=60000:50000 kill
	equal traces "$(value traces)" $((base + 150010))
	equal lost "$(value lost)" 0
	equal "bytes of the second run" "$(folded alloc_blocks)" $((bytes * 150010 / 100000))
	record -o trace -- "$target" below=80000:40000 kill
	equal traces "$(value traces)" $((base + 40000))
}

# The stack is as deep before as it will be later. What was recorded before is not lost, and
# what could not be is counted.
test_no_memory() {
	local base dropped
	base=$(bare)
	record -o trace -- "$target" alloc=5000 below=30000:1 tight deep=20000
	equal status "$status" 0
	dropped=$(sed -n 's/^warning: \([0-9]*\) allocations .* were dropped: .*/\1/p' stderr)
	equal "all traces" $(($(value traces) + $(value lost) + dropped)) $((base + 25002))
	[[ $dropped -gt 0 ]] || fail "there was memory enough"
	grep -q '^note: the recorder got no memory' stderr || fail "not said"
	[[ $(value traces) -ge $((base + 5000)) ]] || fail "$(value traces) traces"
}

# The program alternates between two sizes: samples in step with it would see one only.
# 40000 KiB in samples of 1 KiB, so the standard deviations are about 1 %.
test_interval() {
	local interval
	export INCSTACK_SEED=1
	for interval in 256 1k 8000; do
		record -o trace --interval "$interval" -- "$target" mixed=160000
		equal status "$status" 0
		equal lost "$(value lost)" 0
		near "bytes of alloc_small" "$(folded alloc_small)" 10240000 8
		near "bytes of alloc_large" "$(folded alloc_large)" 30720000 8
		near "allocations" "$(sed -n 's/^allocated .* in \([0-9]*\) calls.*/\1/p' stderr)" 320000 8
	done
	# As many samples as intervals.
	near "traces" "$(value traces)" $((40960000 / 8000)) 6
	# A block far larger than the interval counts as it is.
	record -o trace --interval 1k -- "$target" big=50000000
	near "bytes of main" "$(folded main)" 50000000 1
}

# Runs of one program choose different samples, so their errors average out, unless a seed is given.
test_seeds() {
	for _ in 1 2 3 4 5 6; do
		record -o trace --interval 8000 -- "$target" mixed=1600
		folded alloc_large >>different
		INCSTACK_SEED=7 record -o trace --interval 8000 -- "$target" mixed=1600
		folded alloc_large >>equal
	done
	equal "different estimates with a seed" "$(sort -u equal | wc -l)" 1
	(($(sort -u different | wc -l) > 1)) || fail "all runs have chosen the same samples: $(cat different)"
}

# An allocator whose operators new call malloc for some blocks only: each counts once.
test_operator_new() {
	local first program
	program=$(dirname "$target")/../preload/stacks_new
	export LD_PRELOAD=$program.so
	record -o trace -- "$program" 1000
	equal status "$status" 0
	first=$(value traces)
	record -o trace --interval 1 -- "$program" 3000
	equal "traces of 2000 rounds" $(($(value traces) - first)) 4000
	grep -q "^allocated .* in $(value traces) calls$" stderr || fail "calls"
	grep -q '^at the peak .*still live at exit 0 B' stderr || fail "some are live"
	record -o trace --interval 100 -- "$program" 20000
	near calls "$(sed -n 's/^allocated .* in \([0-9]*\) calls (estimated)$/\1/p' stderr)" 40300 10
}

# A program's own allocator is not seen, which the report says.
test_own_allocator() {
	printf '%s\n' '#include <cstdlib>' \
		'static char pool[1 << 16], *at = pool;' \
		'void *operator new(std::size_t n) { return at += n; }' \
		'void operator delete(void *) noexcept {}' \
		'int main() { delete new int[2]; }' >own.cpp
	c++ -w -o own own.cpp
	record -o trace -- ./own
	equal status "$status" 0
	grep -q '^note: .*defines operator new' stderr || fail "no note"
	printf '%s\n' '#include <stddef.h>' 'static char pool[1 << 20], *at = pool;' \
		'void *malloc(size_t n) { at += n + 15 & -16; return at - (n + 15 & -16); }' \
		'void free(void *p) { (void)p; }' \
		'void *calloc(size_t n, size_t m) { return malloc(n * m); }' \
		'void *realloc(void *p, size_t n) { return p ? 0 : malloc(n); }' \
		'int main(void) { free(malloc(1)); return 0; }' >own.c
	cc -w -o own own.c
	record -o trace -- ./own
	equal status "$status" 0
	grep -q '^note: .*defines malloc' stderr || fail "no note"
	printf '%s\n' '#include <stdlib.h>' \
		'void *mallocx(size_t n, int flags) { return malloc(n + (flags & 0)); }' >special.c
	cc -w -shared -fPIC -o libspecial.so special.c
	for own in 'mallocx(1, 0)' 'malloc(1)'; do
		printf '%s\n' '#include <stdlib.h>' 'void *mallocx(size_t, int);' \
			"int main(void) { free($own); return 0; }" >own.c
		cc -w -fno-builtin -o own own.c -Wl,--no-as-needed -L. -lspecial -Wl,-rpath,"$PWD"
		record -o trace -- ./own
		equal status "$status" 0
		equal notes "$(grep -c '^note: functions that only some' stderr)" \
			"$(grep -c 'free(mallocx' own.c)"
	done
	record -o trace -- "$target" alloc=1
	! grep -q '^note:' stderr || fail "a note"
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
