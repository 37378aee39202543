#!/bin/bash
# SPDX-License-Identifier: MIT
#
# resident.sh TOOL TARGET NAME runs the function test_NAME in a new directory. The resident bytes of each function of the
# target must be those that mincore shows, and the rows of the report must add up to what the kernel counts.
set -euo pipefail
tool=$1 target=$2

# shellcheck source=tests/tool/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
compare() { python3 -B "$sums" "$@" || fail "the numbers differ"; }
sums=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/resident_sums.py

# wait_for FILE: until the program has written its last line; the machine may be busy.
wait_for() {
	for _ in {1..600}; do
		! grep -q '^ready$' "$1" || return 0
		[[ -n $(jobs -r) ]] || break
		sleep 0.1
	done
	fail "$1: the program is not ready"
}

# begin COMMAND...: runs it in the background until its input ends, which finish brings about.
begin() {
	mkfifo gate
	timeout 280 "$@" <gate >truth 2>stderr &
	exec 9>gate
	wait_for truth
}
finish() {
	exec 9>&-
	wait
}
# recorded: the process that the tool runs.
recorded() { pgrep -n -x -f "$1"; }

test_at_exit() {
	local mode
	for mode in exit fork; do
		"$tool" heap --resident -o trace -- "$target" "$mode" >truth 2>stderr
		grep -q '^Resident memory when the recording ended$' stderr || fail "no section"
		grep -q 'of the live blocks ([0-9.]*%) are not in memory' stderr || fail "no answer"
		grep -q '^Live, but not in memory$' stderr || fail "no contexts"
		"$tool" report --json trace >json
		compare json truth
	done
	# Nobody looks unless that is wished.
	"$tool" heap -o trace -- "$target" >truth 2>stderr
	! grep -q 'Resident memory' stderr || fail "a section"
	"$tool" report --json trace >json
	grep -q '"resident": null' json || fail "not null"
}

# A packed file keeps the moment, and so does its unpacked form. A file that is cut before it has none.
test_packed_and_cut() {
	"$tool" heap --resident -o trace -- "$target" >truth 2>stderr
	unpack trace
	"$tool" report --json trace >json
	compare json truth
	truncate -s -5 trace
	"$tool" report trace >out 2>&1 || true
	grep -q 'the file is cut off' out || fail "not cut"
	! grep -q 'Resident memory' out || fail "a section of a file that is cut"
	"$tool" heap --resident -o trace -- "$target" >truth 2>stderr
	truncate -s -5 trace
	"$tool" report trace >out 2>&1 || true
	grep -q 'the file is cut off' out || fail "not cut"
	! grep -q 'Resident memory' out || fail "a section of a packed file that is cut"
}

test_other_formats() {
	"$tool" heap --resident -o trace -- "$target" >truth 2>stderr
	"$tool" convert trace profile.pb.gz
	"$tool" report --kind resident profile.pb.gz >out
	grep -q sparse out || fail "no resident bytes in pprof"
	"$tool" convert --kind resident trace profile.folded
	awk '/;never [0-9]+$/ { found = $NF } END { exit !(found < 8192) }' profile.folded ||
		fail "all of the folded stacks"
}

test_snapshot() {
	local before pid
	begin "$tool" heap -o trace -- "$target" wait
	pid=$(recorded "$target wait")
	"$tool" snapshot "$pid" first.heap >out 2>err
	grep -q '^The process went on after this snapshot.$' out || fail "not said to go on"
	grep -q 'in which 0 allocations were made$' out || fail "not said how long it took"
	"$tool" report --json first.heap >json
	compare json truth "$pid"
	before=$(stat -c %s first.heap)
	[[ $before -gt 1000 ]] || fail "first.heap is empty"
	"$tool" snapshot -q "$pid" 2>err
	[[ -s incstack.$pid.1.heap && ! -e incstack.$pid.1.heap.html ]] || fail "no default name"
	"$tool" snapshot -q "$pid" 2>err
	[[ -s incstack.$pid.2.heap ]] || fail "no second default name"
	! "$tool" snapshot "$pid" trace 2>err || fail "replaced the trace file"
	grep -q 'is the trace file itself' err || fail "not said: it is the trace file itself"
	finish
	[[ $(tail -n 1 stderr) == *" lost=0 "* ]] || fail "the recording lost something"
	"$tool" compare first.heap trace >out
}

# What a busy program has recorded is in the snapshot once: no trace is lost, none comes twice.
test_snapshot_of_busy() {
	local pid
	begin "$tool" heap -o trace -- "$target" busy
	pid=$(recorded "$target busy")
	for _ in {1..10}; do
		"$tool" snapshot -q "$pid" busy.heap 2>err
		"$tool" report --json busy.heap >json
		compare json
	done
	finish
}

test_snapshot_refused() {
	local status
	for arguments in '' 'x' '-1' '1 2 3' '--nothing 1'; do
		status=0
		# shellcheck disable=SC2086 # several arguments
		"$tool" snapshot $arguments >out 2>err || status=$?
		equal "status of $arguments" "$status" 2
	done
	status=0
	"$tool" snapshot 4194304 2>err || status=$?
	equal "status without a process" "$status" 127
	begin "$target" wait
	status=0
	"$tool" snapshot "$(recorded "$target wait")" 2>err || status=$?
	equal "status without a recording" "$status" 126
	grep -q 'is not being recorded by incstack heap' err || fail "not said why"
	finish
}

# The tool cannot look where there is no /proc, or no room; the report says so, and loses nothing else.
# reason: NO_MOMENT
test_no_room() {
	local blocks
	"$tool" heap --resident -o trace -- "$target" >truth 2>stderr
	unpack trace
	blocks=$(($(stat -c %s trace) / 1024 - 4))
	(ulimit -f "$blocks" && exec "$tool" heap --resident -o trace -- "$target") >truth 2>stderr
	grep -q '^note: which memory was resident is not known' stderr || fail "no note"
	[[ $(tail -n 1 stderr) == *" lost=0 "* ]] || fail "events are lost"
}

# The rows of programs whose memory nobody here knows add up, too.
test_other_programs() {
	local pid
	mkdir redis
	"$tool" heap --resident -o python -- python3 -c 'x = [bytearray(i) for i in range(2000)]' \
		>out 2>stderr
	"$tool" report --json python >json
	compare json
	if [[ $(type -t node) ]]; then
		"$tool" heap --resident -o node -- node -e 'x = Buffer.alloc(30000000, 1)' >out 2>stderr
		"$tool" report --json node >json
		compare json
	fi
	[[ $(type -t redis-server) ]] || return 0
	"$tool" heap --resident -o trace -- redis-server --port 0 --unixsocket redis/socket \
		--save '' >out 2>stderr &
	for _ in {1..600}; do
		[[ ! -S redis/socket ]] || break
		sleep 0.1
	done
	pid=$(pgrep -P $!)
	"$tool" snapshot -q "$pid" redis.heap 2>err
	kill "$pid"
	wait
	for file in redis.heap trace; do
		"$tool" report --json "$file" >json
		compare json
	done
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
