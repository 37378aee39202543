#!/bin/bash
# SPDX-License-Identifier: MIT
#
# waits.sh TOOL TARGET NAME runs the function test_NAME in a new directory: incstack cpu --wall=calls, which needs no
# rights. The programs, waits_target and attach_wall, say how long their own clocks saw them in functions with known
# names. A thread may lose its processor between the program's look at the clock and ours. So the program's time is
# the most that a wait can have, and the least is how long the program asked to wait.
set -euo pipefail
tool=$1 target=$2 command=cpu
walls=$(dirname "$target")/attach_wall

# shellcheck source=tests/tool/attach_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/attach_common.sh"

allowed() { :; }

# said WORD: the milliseconds that the program has printed after the word.
said() { sed -n "s/^$1 //p" stdout; }

# wall STATUS PROGRAM...: no call of the program was interrupted. reason: WALL_CALLS
wall() {
	local expected=$1
	shift
	status=0
	timeout "$limit" "$tool" cpu --folded --wall=calls -o trace -- "$@" >stdout 2>stderr </dev/null || status=$?
	keep_sums
	((status != 77)) || exit 77
	equal status "$status" "$expected"
	equal "lost traces" "$(value lost)" 0
	! grep interrupted stdout || fail "a system call was interrupted"
	grep -q 'note: wall-clock time, measured around the calls' stderr || fail "does not say what was measured"
}

# in_state KIND REGEX: milliseconds in the contexts that match, of one state.
in_state() {
	"$tool" report -k "$1" --folded trace >/dev/null 2>&1
	spent_ms "$2"
}

# waits_in KIND REGEX LEAST MOST
waits_in() {
	local ms
	ms=$(in_state "$1" "$2")
	(($3 * 97 / 100 - 3 <= ms && ms <= $4 * 103 / 100 + 3)) || fail "$2: $ms ms of $1, not $3 to $4"
}

test_parts() {
	wall 7 "$walls" parts
	waits_in sleep ';main;parts;rest' 400 "$(said rest)"
	waits_in running ';main;parts;work' 100 220
}

test_naps() {
	wall 7 "$walls" naps
	waits_in sleep ';naps;nap;' 150 "$(said nap)"
}

test_lock() {
	wall 7 "$walls" lock
	waits_in lock ';waiter;want_lock' 500 "$(said lock)"
}

test_held() {
	wall 7 "$walls" held
	waits_in lock ';want_often;want_held' 1 "$(said held)"
}

test_pipe() {
	wall 7 "$walls" pipe
	waits_in I/O ';take_bytes;take_byte' 1 "$(said pipe)"
}

test_crowd() {
	wall 7 "$walls" crowd
	waits_in sleep ';sleeper;rest' 2000000 "$(said crowd)"
}

# The waits of threads that still wait when the program ends. On a busy machine not all of them answer in time.
test_idle() {
	local least
	wall 7 "$target" idle
	least=$(said idle)
	! grep -q 'could not be stopped' stderr || least=0
	(($(in_state I/O ';wait_for_ever') >= least * 97 / 100 - 3)) ||
		fail "$(in_state I/O ';wait_for_ever') ms in read, not $least"
}

test_calls() {
	wall 7 "$target" calls
	waits_in sleep ';make_calls;in_(usleep|nanosleep|clock_nanosleep)' 60 "$(said calls)"
	(($(in_state I/O ';make_calls;in_poll') > 0)) || fail "no poll"
}

# A timer of elapsed time interrupts nearly each call, and the program does not notice.
test_ticks() {
	LD_PRELOAD=$(dirname "$tool")/libincstack_preload_waits.so \
		INCSTACK_HEAP="kind=1;wall=1;elapsed=1;interval=5000000;file=$PWD/trace" \
		"$target" ticks >stdout || status=$?
	((status != 77)) || exit 77
	equal status "$status" 7
	! grep interrupted stdout || fail "a system call was interrupted"
	"$tool" report trace >stderr 2>&1
	grep -q 'running' stderr || fail "no ticks"
}

# Its own signals do interrupt its calls; the handler's wait is not part of the wait that it interrupts.
test_signals() {
	wall 7 "$target" signals
	grep -qx 'signals 1 left 1' stdout || fail "$(<stdout)"
	(($(in_state sleep ';on_alarm') > 0)) || fail "no wait in the handler"
}

# Where the kernel does not report waits, the calls are measured without being asked for.
test_unprivileged() {
	((UID == 0 && $(</proc/sys/kernel/perf_event_paranoid) >= 2)) || exit 77
	chmod 711 .
	mkdir -m 777 there
	status=0
	setpriv --reuid 65534 --clear-groups --bounding-set=-all \
		"$tool" cpu --wall -o there/trace -- "$walls" parts >stdout 2>stderr || status=$?
	! grep -q 'cannot execute\|Permission denied' stderr || exit 77 # the build is not for others
	equal status "$status" 7
	grep -q 'measured around the calls' stderr || fail "$(<stderr)"
}

test_refusals() {
	refuses 2 'takes no --wall=calls' --wall=calls -p $$
	refuses 2 'takes kernel or calls' --wall=timers -- "$target" calls
}

run_test "$3"
