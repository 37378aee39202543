#!/bin/bash
# SPDX-License-Identifier: MIT
#
# attach.sh TOOL TARGET NAME runs the function test_NAME in a new directory. TARGET runs until it is
# killed, in functions with known names; see attach_target.c. Where the kernel allows no samples, the
# tests are skipped (77).
set -euo pipefail
tool=$1 target=$2 command=cpu
frames='outer(;(inner(;leaf)?|twin(;twig)?))?' # what a trace may end with

# shellcheck source=tests/tool/attach_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/attach_common.sh"

has() { (($(spent "$1") > 0)) || fail "no time in $1: $(cat trace.folded)"; }

test_spin() {
	begin "$target" spin
	state_of "$pid" >before
	begin_tool
	uses 30
	state_of "$pid" >during
	kill -TERM $!
	wait $! || fail "exit status $?"
	state_of "$pid" >after
	cmp before during || fail "$(diff before during)"
	cmp before after || fail "$(diff before after)"
	keep_sums
	status=0
	adds_up
	equal failed "$(tick failed)" 0
	equal truncated "$(value truncated)" 0
	# Whatever the moment, the trace is that of the program.
	equal "other contexts" "$(spent .)" "$(spent '^_start;.*;main;'"$frames ")"
	has ';main;outer;inner'
	grep -q "process $pid goes on" stderr || fail "does not say that the program goes on"
	"$tool" report --folded trace >again
	grep -q '% *leaf$' again || fail "the report cannot be repeated"
	kill -0 "$pid" || fail "the program has ended"
}

# Threads that begin and end during the time. The kernel's clock says how much there was to see.
test_threads() {
	local seen used sampled
	during "$target" threads
	equal "other contexts" "$(spent ';outer')" "$(spent ';worker;'"$frames ")"
	has ';worker;outer;inner'
	seen=$(sed -n 's/.* traces* of \([0-9]*\) threads*,.*/\1/p' stderr)
	((seen > 50 && seen <= 61)) || fail "$seen threads were seen, not 60 or 61"
	used=$(tail -n 1 begun) sampled=$(spent_ms .)
	((sampled > used / 2 && sampled < used + used / 10 + 10)) ||
		fail "$sampled ms were sampled of $used"
}

# With -t each context begins with the name of its thread.
test_names() {
	begin "$target" spin
	attach_while 20 -t
	adds_up
	equal "contexts of no thread" "$(spent .)" "$(spent '^attach_target;_start;.*;main;outer')"
}

# No call of the program is interrupted.
test_calls() {
	interval=100us during "$target" calls
	equal "the program's status" "$ended" 0
	has ';make_calls;outer;inner'
	has ';make_calls;.*epoll_wait'
}

# The handler of a signal: its callers are those of the interrupted code, if they are on its stack.
test_signals() {
	begin "$target" handler
	attach_while 20
	adds_up
	has '^_start;.*;main;in_handler;.*;on_signal;outer;inner'
	equal truncated "$(value truncated)" 0
	kill -KILL "$pid"
	begin "$target" aside
	attach_while 20
	adds_up
	has '^[[]callers unknown[]];.*;on_signal;outer;inner'
	equal "other contexts" "$(spent .)" "$(spent '^[[]callers unknown[]];.*;on_signal;outer')"
}

# Children are not sampled.
test_forks() {
	during "$target" forks
	has ';make_children;outer;inner'
	equal "children's time" "$(spent ';child')" 0
}

# A stack that does not fit into the copy: its callers are unknown, which is counted.
test_deep() {
	begin "$target" deep 100
	attach_while 20
	adds_up
	equal truncated "$(value truncated)" 0
	has '^_start;.*;main;(descend;){101}outer;inner'
	kill "$pid"
	begin "$target" deep 2000
	attach_while 20
	adds_up
	(($(value truncated) > 0)) || fail "does not count unknown callers"
	equal "other contexts" "$(spent .)" \
		"$(spent '^\[callers unknown\];(descend;){20,40}'"$frames ")"
}

# Two libraries that are mapped at the same address, one after the other.
test_reload() {
	during "$target" reload "$(dirname "$target")"/attach_{first,second}.so
	equal "the program's status" "$ended" 0
	has ';reload;plugin_run;in_first;outer'
	has ';reload;plugin_run;in_second;outer'
	equal "other functions" "$(spent ';outer')" \
		"$(spent ';run_once;reload;plugin_run;in_(first|second);'"$frames ")"
}

test_exec() {
	during "$target" exec reload "$(dirname "$target")"/attach_{first,second}.so
	equal "the program's status" "$ended" 0
	has ';main;run_once;before;outer;inner'
	has ';reload;plugin_run;in_second;outer'
}

# No library could be loaded into these.
test_closed() {
	begin "$target" strict
	attach_while 20
	adds_up
	has ';main;outer;inner'
	begin "$(dirname "$target")/attach_static" spin
	attach_while 20
	adds_up
	has ';main;outer;inner'
	begin "$(dirname "$target")/attach_static_bare" spin
	attach_while 20
	adds_up
	has '^\[callers unknown: frame pointer\];.*leaf'
}

# The program that runs is no longer the file of that name.
test_replaced() {
	((UID == 0)) || exit 77 # opening a removed file that is mapped needs rights
	cp "$target" program
	begin ./program spin
	rm program
	cp /bin/true program
	attach_while 20
	adds_up
	has ';main;outer;inner'
}

# The program is in a file system that only it can see. Others see another file of that name.
test_elsewhere() {
	unshare -m true 2>/dev/null || exit 77
	mkdir hidden
	cp /bin/true hidden/program
	# shellcheck disable=SC2016 # the other shell expands it
	begin unshare -m bash -c 'mount -t tmpfs none hidden && cp "$1" hidden/program &&
		exec hidden/program spin' - "$target"
	cmp -s hidden/program /bin/true || fail "the file system is not hidden"
	attach_while 20
	adds_up
	has ';main;outer;inner'
}

# A program that sleeps, and one that is stopped: there is nothing to see, and nothing changes.
test_idle() {
	sleep 1000 &
	attach -o trace -d 0.2 -p $!
	adds_up 0
	begin "$target" spin
	kill -STOP "$pid"
	until grep -q '^State:.T' "/proc/$pid/status"; do :; done
	attach -o trace -d 0.2 -p "$pid"
	adds_up 0
	grep -q '^State:.T' "/proc/$pid/status" || fail "it was continued"
	kill -CONT "$pid"
	attach_while 10
	adds_up
}

# The time of -d is over by itself.
test_duration() {
	local before
	begin "$target" spin
	before=$(date +%s%N)
	attach -o trace -d 0.5 -p "$pid"
	adds_up 0
	(($(date +%s%N) - before >= 500000000)) || fail "ends too early"
	grep -q "process $pid goes on" stderr || fail "does not say that the program goes on"
	kill -0 "$pid" || fail "the program has ended"
}

# The tool ends when the user, or the program, ends it.
test_ends() {
	local end
	for end in INT TERM; do
		rm -f trace
		begin "$target" spin
		: >stderr
		# The shell starts what is in the background with SIGINT ignored.
		(trap - INT && exec "$tool" cpu --folded -o trace -p "$pid" 2>stderr) &
		attached $!
		uses 20
		kill -"$end" $!
		wait $! || fail "exit status after SIG$end: $?"
		grep -q "process $pid goes on" stderr || fail "SIG$end does not end it well"
		grep -q '% *leaf$' stderr || fail "no report after SIG$end"
	done
	during "$target" ends
	has ';run_once;before;outer;inner'
	# A tool that is killed leaves nothing either, and what it has written can be read.
	begin "$target" spin
	state_of "$pid" >before
	begin_tool
	uses 20
	kill -KILL $!
	wait $! || true
	state_of "$pid" >after
	cmp before after || fail "$(diff before after)"
	attach_while 10
	adds_up
}

# Whether the ticks are as many as the clocks of the threads say. The kernel skips ticks if its timer is late,
# as on a machine whose processors are shared with others.
clock_says_so() {
	local clock
	clock=$(sed -nE 's/.*the clocks of the threads say ([0-9.]+ m?s)$/\1/p' stderr |
		awk '{ print $1 * ($2 == "s" ? 1000 : 1) }')
	awk -v clock="$clock" -v ticks="$(tick expected)" 'BEGIN {
		right = ticks > clock * 0.7 && ticks < clock * 1.05
		print right ? "yes" : ticks " of " clock
	}'
}

# While the tool is stopped, its buffers run over, which is counted. They have room for some 150 ticks.
test_overrun() {
	begin "$target" spin
	begin_tool
	worker=$(worker_of $!)
	kill -STOP "$worker"
	uses 80
	kill -TERM $!
	kill -CONT "$worker"
	wait $! || fail "exit status $?"
	keep_sums
	status=0
	adds_up
	(($(tick failed) > 0)) || fail "counts no loss"
	grep -q 'failed: no room for the trace' stderr || fail "does not say why"
	equal "ticks as the clock says" "$(clock_says_so)" yes
}

# Two at a time do not disturb each other.
test_together() {
	local other
	begin "$target" spin
	"$tool" cpu --folded -o other -p "$pid" 2>other.err &
	other=$!
	attached "$other" other.err
	attach_while 20
	adds_up
	kill -TERM "$other"
	wait "$other" || fail "the other one: exit status $?"
	equal "other contexts" "$(spent .)" "$(spent '^_start;.*;main;'"$frames ")"
}

# An ELF program for i386 that runs for ever.
make_i386() {
	{
		printf '\x7fELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\3\0\1\0\0\0\x54\x80\4\x08\x34\0\0\0\0\0\0\0'
		printf '\0\0\0\0\x34\0\x20\0\1\0\x28\0\0\0\0\0'
		printf '\1\0\0\0\0\0\0\0\0\x80\4\x08\0\x80\4\x08\x56\0\0\0\x56\0\0\0\5\0\0\0\0\x10\0\0'
		printf '\xeb\xfe'
	} >"$1"
	chmod +x "$1"
}

test_refused() {
	local zombie word
	begin "$target" spin
	for word in 0 -1 x 12x 99999999999; do
		refuses 2 'takes a process id' -p "$word"
	done
	for word in 0 -1 x 1x; do
		refuses 2 '--duration takes' -p "$pid" -d "$word"
	done
	refuses 2 '--duration needs --pid' -d 1 -- true
	refuses 2 'takes no program' -p "$pid" -- true
	refuses 2 'neither --mode' -p "$pid" --mode patch
	refuses 2 'neither --mode' -p "$pid" --crosscheck
	refuses 2 'neither --mode' -p "$pid" --follow-children
	refuses 127 'no process 4194305' -p 4194305
	begin python3 -c 'import os, time
child = os.fork()
if child == 0:
    os._exit(0)
print(child, flush=True)
time.sleep(1000)'
	zombie=$(cat begun)
	until grep -q '^State:.Z' "/proc/$zombie/status"; do :; done
	refuses 126 'it has ended' -p "$zombie"
	[[ ! -e /proc/2/exe && $(cat /proc/2/comm) == kthreadd ]] && refuses 126 'thread of the kernel' -p 2
	begin python3 -c 'import threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
print(flush=True)'
	refuses 126 "it is a thread of process $pid" -p "$(
		find "/proc/$pid/task" -mindepth 1 -maxdepth 1 ! -name "$pid" -printf '%f'
	)"
	make_i386 small
	./small 2>/dev/null &
	# Until then the process is a copy of the shell. A kernel may be unable to run such a program.
	until [[ $(readlink "/proc/$!/exe") == */small ]]; do kill -0 $! 2>/dev/null || break; done
	kill -0 $! 2>/dev/null && refuses 126 'is not for x86-64' -p $!
	if ((UID == 0)); then
		chmod 777 .
		setpriv --reuid 65534 --clear-groups "$tool" cpu --folded -o refused -p "$pid" 2>stderr &&
			fail "samples another user's process"
		grep -q 'another user' stderr || fail "does not say whose process it is"
		[[ ! -e refused ]] || fail "a file was made"
	fi
}

# Without privileges, too: fewer buffers, and the kernel may not show its own time.
test_unprivileged() {
	((UID == 0)) || exit 77
	(($(cat /proc/sys/kernel/perf_event_paranoid) <= 2)) || exit 77
	chmod 777 .
	begin setpriv --reuid 65534 --clear-groups "$target" spin
	pid=$(pgrep -P "$pid" || echo "$pid")
	as=(setpriv --reuid 65534 --clear-groups)
	attach_while 30
	adds_up
	has ';main;outer;inner'
}

# A full disk ends the sampling with one line.
test_full() {
	begin "$target" spin
	(
		ulimit -f 80
		attach -o trace -p "$pid" -i 100us
		equal status "$status" 126
		equal messages "$(grep -c 'cannot write' stderr)" 1
	)
	kill -0 "$pid" || fail "the program has ended"
}

allowed() {
	begin "$target" spin
	attach -o probe -d 0.1 -p "$pid"
	! grep -q 'perf_event_open' stderr || exit 77
	kill "$pid"
}

run_test "$3"
