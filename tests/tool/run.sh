#!/bin/bash
# SPDX-License-Identifier: MIT
#
# run.sh TOOL TARGET NAME runs the function test_NAME in a new directory. TARGET's
# allocations are known; what a bare start costs (the loader and libc may allocate)
# is measured, and subtracted.
set -euo pipefail
tool=$1 target=$2

fail() {
	echo "$*" >&2
	[[ ! -f stderr ]] || cat stderr >&2
	exit 1
}

equal() { [[ $2 == "$3" ]] || fail "$1 is $2, not $3"; }

# record ARGUMENTS...: incstack heap, whatever its exit status, which is in $status.
record() {
	status=0
	timeout 60 "$tool" heap "$@" >stdout 2>stderr </dev/null || status=$?
	last=$(tail -n 1 stderr)
}

# One number of the last line.
value() { sed -n "s/^incstack: .*\<$1=\([^ ]*\).*\$/\1/p" <<<"$last"; }

# The traces of a program that takes no step.
bare() {
	record -o bare -- "$target"
	value traces
}

# Also that a shell, which forks out of forks, comes to its end.
test_forks_of_forks() {
	local base
	base=$(bare)
	record -o trace -- "$target" alloc=10 nest alloc=10
	equal status "$status" 0
	equal traces "$(value traces)" $((base + 20))
	record -o trace --follow-children -- "$target" alloc=10 nest alloc=10
	equal status "$status" 0
	# shellcheck disable=SC2016
	record -o trace --follow-children -- sh -c 'x=$(echo $(echo a | cat)); test "$x" = a'
	equal status "$status" 0
}

# What a thread has counted is in the file when its traces are, however it ends.
test_counters_are_exact() {
	local base mode
	base=$(bare)
	for mode in patch validate full; do
		record -o trace --crosscheck --mode "$mode" -- "$target" threads=8:5000 alloc=1000
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
	equal returns "$(value returns)" 0
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

# Threads that ended have written all; the killer's own 50 traces are lost, and counted.
test_killed() {
	local base end
	base=$(bare)
	for end in kill:137 abort:134; do
		record -o trace --crosscheck -- "$target" threads=4:20000 alloc=50 "${end%:*}"
		equal status "$status" "${end#*:}"
		equal "traces and lost" $(($(value traces) + $(value lost))) $((base + 4 * 20001 + 50))
		[[ $(value lost) -gt 0 && $(value traces) -ge 80000 ]] || fail "lost $(value lost)"
		[[ $(value crosschecked) -ge 80000 ]] || fail "checked $(value crosschecked)"
		grep -q 'did not end normally' stderr || fail "no warning"
	done
}

test_exec() {
	local base
	base=$(bare)
	record -o trace --crosscheck -- "$target" alloc=77 exec=nosuchprogram alloc=23
	equal traces "$(value traces)" $((base + 100))
	equal crosschecked "$(value crosschecked)" "$(value traces)"
	! grep -q 'became another program' stderr || fail "it did not"
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
