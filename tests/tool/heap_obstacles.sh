#!/bin/bash
# SPDX-License-Identifier: MIT
#
# heap_obstacles.sh TOOL TARGET NAME runs the function test_NAME in a new directory. Each puts something in the
# way of the recorder: limits, a full disk, a sandbox, another recording.
set -euo pipefail
tool=$1 target=$2

# shellcheck source=tests/tool/heap_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/heap_common.sh"

test_full_disk() {
	local base
	base=$(bare)
	LD_PRELOAD=$(dirname "$target")/../preload/full_disk.so record -o trace -- \
		"$target" alloc=100000
	equal status "$status" 0
	grep -q '^note: the disk is full' stderr || fail "not said"
	equal "lines of the program" "$(grep -c '^incstack: ' stderr)" 2
	equal "traces and lost" $(($(value traces) + $(value lost))) $((base + 100000))
	[[ $(value traces) -gt 1000 && $(value lost) -gt 1000 ]] || fail "$last"
}

# At the limit the kernel would end the program by a signal.
test_file_limit() {
	local base
	(ulimit -f 4 && refuse 126 'ulimit -f' -o small -- "$target" alloc=10)
	[[ ! -e small ]] || fail "a trace file is left"
	base=$(bare)
	(
		ulimit -f 700 # of 1024 bytes
		record -o trace -- "$target" alloc=100000
		equal status "$status" 0
		grep -q '^note: .*ulimit -f' stderr || fail "not said"
		equal output "$(cat stdout)" ""
		equal "traces and lost" $(($(value traces) + $(value lost))) $((base + 100000))
		[[ $(value traces) -gt 1000 && $(value lost) -gt 1000 ]] || fail "$last"
	)
	# If there is no room for the file of the next program, the program still runs.
	# shellcheck disable=SC2016
	record -o trace -- bash -c 'ulimit -f 4; exec "$0" alloc=10 >&2' "$target"
	equal status "$status" 0
	grep -q '^note: .*could not be recorded' stderr || fail "not said"
	# shellcheck disable=SC2016
	record -o trace -- bash -c 'ulimit -f 4; for i in {1..9000}; do x=$i$i; done; echo ok'
	equal status "$status" 0
	equal output "$(cat stdout)" ok
}

# The program runs as without the recorder, and only the tool says why there is no report.
test_no_recorder() {
	mkdir alone
	cp "$tool" "$(dirname "$tool")/libincstack_preload.so" alone
	status=0
	alone/incstack heap -o trace -- sh -c 'echo out; echo err >&2; exit 3' \
		>stdout 2>stderr </dev/null || status=$?
	equal status "$status" 3
	equal output "$(cat stdout)" out
	equal "lines that are not the tool's" "$(grep -v '^incstack: ' stderr)" err
	equal "lines of the tool" "$(grep -c '^incstack: ' stderr)" 2
	grep -q 'nothing was recorded into .*: the recorder could not be loaded' stderr || fail "not said"
	[[ ! -e trace ]] || fail "an empty file is left"
}

# Where the hardware guards return addresses, none is changed, and the report says so.
test_shadow_stack() {
	# shellcheck disable=SC2016
	record -o trace -- sh -c 'LD_PRELOAD="$LD_PRELOAD:$0" exec "$@"' \
		"$(dirname "$target")/../preload/shadow_stack.so" "$target" alloc=1000
	equal status "$status" 0
	equal mode "$(value mode)" validate
	grep -q '^note: .*shadow stack' stderr || fail "not said"
}

# In a sandbox that the recorder's system calls would end, recording stops.
test_sandbox() {
	local kind program
	program=$(dirname "$target")/../preload/stacks_sandbox
	for kind in kill trap errno sync calls strict strict_call; do
		record -o trace -- "$program" $kind
		equal "status in $kind" "$status" 0
		grep -q '^note: .*seccomp' stderr || fail "$kind: not said"
		[[ $(value traces) -gt 2000 ]] || fail "$kind: $last"
	done
	record -o trace -- "$program" allow
	equal status "$status" 0
	! grep -q '^note:' stderr || fail "a note"
	equal lost "$(value lost)" 0
	[[ $(value traces) -gt 4000 ]] || fail "$last"
}

# Two runs never write one file.
test_same_file() {
	local first
	mkfifo never
	"$tool" heap --folded -o trace -- bash -c ': >ready; read -r <never' >stdout 2>first </dev/null &
	first=$!
	until [[ -e ready ]]; do sleep 0.1; done
	record -o trace -- "$target" alloc=10
	equal status "$status" 126
	grep -q "trace is being written by process [0-9]*; choose another" stderr || fail "not said"
	record -o trace2 -- "$target" alloc=10
	equal status "$status" 0
	echo >never
	wait $first || fail "the first: $(cat first)"
	last=$(tail -n 1 first)
	[[ $(value traces) -gt 100 ]] || fail "$last"
	equal lost "$(value lost)" 0
	record -o trace -- "$target" alloc=10
	equal status "$status" 0
	# One that outlives its tool.
	rm -f ready
	# shellcheck disable=SC2016
	record -o trace -- bash -c '(exec >/dev/null 2>&1; : >ready; read -r <never) &
		until [[ -e ready ]]; do sleep 0.1; done'
	equal status "$status" 0
	echo >never
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
