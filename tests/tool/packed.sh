#!/bin/bash
# SPDX-License-Identifier: MIT
#
# packed.sh TOOL TARGET NAME runs the function test_NAME in a new directory: trace files become small when the program
# has ended, and whatever happens meanwhile, nothing is lost.
set -euo pipefail
tool=$1 target=$2

# shellcheck source=tests/tool/heap_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/heap_common.sh"

is_packed() { (($(od -An -tu4 -j 8 -N 4 "$1") >> 31)); }

# shown FILE: the report on a file, without the names of files.
shown() { "$tool" report -o page "$1" 2>&1 | grep -v '^flame graph: ' || fail "no report on $1"; }

# traces FILE: how many traces the report tells of.
traces() { "$tool" report -o page "$1" 2>/dev/null | sed -n 's/^\([0-9]*\) traces of .*/\1/p'; }

test_small_files() {
	status=0
	timeout 280 "$tool" heap -o trace -- "$target" alloc=1000000 >stdout 2>stderr </dev/null || status=$?
	equal status "$status" 0
	is_packed trace || fail "not packed"
	[[ $(stat -c %s trace) -le 100000 ]] || fail "$(ls -l)"
	equal files "$(echo *)" "stderr stdout trace trace.html"
	! grep -q 'folded' stderr || fail "tells of a file that there is not"
	record -o trace -- "$target" alloc=10
	[[ -s trace.folded ]] || fail "no folded stacks though they are asked for"
	rm trace.*
	"$tool" report trace >stdout
	[[ ! -e trace.folded ]] || fail "nobody asked for it"
	"$tool" report --folded trace >stdout
	[[ -s trace.folded ]] || fail "no folded stacks though the report is asked for them"
}

test_both_forms() {
	local command
	for command in heap cpu; do
		"$tool" "$command" -o trace -- "$target" leak=15 alloc=200000 below=3:500 threads=2:3000 >stdout 2>stderr ||
			fail "status $?"
		is_packed trace || fail "not packed"
		cp trace raw
		unpack raw
		! is_packed raw || fail "still packed"
		[[ $(stat -c %s raw) -gt $(stat -c %s trace) ]] || fail "not smaller: $(ls -l)"
		diff <(shown trace) <(shown raw) || fail "another report"
		"$tool" convert trace one.pb.gz 2>said
		"$tool" convert raw two.pb.gz 2>said
		cmp one.pb.gz two.pb.gz || fail "another profile"
	done
}

# All before the cut is shown, and a line tells of the cut. A cut between two groups leaves no block incomplete.
test_cut() {
	local part size status
	record -o trace -- "$target" leak=15 alloc=300000
	size=$(stat -c %s trace)
	for part in 0 1 100 4000 4096 4100 $((size / 2)) $((size * 2 / 3)) $((size - 1)); do
		head -c "$part" trace >cut
		status=0
		"$tool" report -o page cut >shown 2>said || status=$?
		if ((part > 4100)); then
			equal "status of the cut at $part" "$status" 0
			grep -q 'the file is cut off\|traces are lost' shown || fail "the cut at $part is not told"
		else
			equal "status of the cut at $part" "$status" 1
			equal "lines about the cut at $part" "$(wc -l <said)" 1
		fi
	done
	head -c $((size / 2)) trace >cut
	(($(traces cut) > 20000)) || fail "only $(traces cut) traces of half of the file"
}

# Where the tool is killed, the trace file is whole, packed or not.
test_killed_while_packing() {
	local base
	record -o trace -- "$target" alloc=400000
	base=$(value traces)
	for _ in 1 2 3; do
		rm -f trace*
		"$tool" heap -o trace -- "$target" alloc=400000 >stdout 2>stderr </dev/null &
		until compgen -G 'trace.*[0-9].part' | grep -qx 'trace\.[0-9]*\.part' || ! kill -0 $! 2>/dev/null; do :; done
		kill -KILL $! 2>/dev/null || true
		wait $! 2>/dev/null || true
		equal "traces after the kill" "$(traces trace)" "$base"
	done
}

# On a full disk the trace file can still be read, and nothing else is left.
test_full_disk() {
	mkdir disk
	mount -t tmpfs -o size=8m none disk 2>/dev/null || exit 77
	trap 'umount disk; rm -rf "$directory"' EXIT
	# shellcheck disable=SC2016
	record -o disk/trace -- bash -c '"$0" alloc=10; cat /dev/zero >disk/filler 2>/dev/null; exit 3' "$target"
	equal status "$status" 3
	equal "temporary files" "$(find disk -name '*.part')" ''
	rm disk/filler
	shown disk/trace | grep -q '^note: the disk is full; recording stopped there$' || fail "$(shown disk/trace)"
}

# A process that outlives the tool still writes its file.
test_still_written() {
	local child file
	# shellcheck disable=SC2016
	record --follow-children -o trace -- bash -c '
		bash -c "$1" "$0" &
		until [[ -s child ]]; do sleep 0.1; done' "$target" \
		'echo $$ >pid; mv pid child; until [[ -e go ]]; do sleep 0.1; done; exec "$0" alloc=777'
	equal status "$status" 0
	child=$(<child)
	file=trace.$child.1 # the image before has ended
	[[ -e $file ]] || fail "$(ls)"
	! is_packed "$file" || fail "packed though it is still written"
	is_packed trace || fail "not packed"
	: >go
	until [[ ! -e /proc/$child ]] || grep -q '^State:.Z' "/proc/$child/status" 2>/dev/null; do sleep 0.1; done
	for file in trace."$child".*[0-9]; do shown "$file" >>all; done
	grep -q ' in 777 calls\| 777 .*alloc_blocks' all || fail "what was allocated later is missing: $(<all)"
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
