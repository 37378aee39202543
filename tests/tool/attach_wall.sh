#!/bin/bash
# SPDX-License-Identifier: MIT
#
# attach_wall.sh TOOL TARGET NAME runs the function test_NAME in a new directory: incstack cpu --wall.
# The functions of TARGET in which it waits have known names, and it says how long it was in them; see
# attach_wall_target.c. Where the kernel allows no samples, the tests are skipped (77).
set -euo pipefail
tool=$1 target=$2 command=cpu

# shellcheck source=tests/tool/attach_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/attach_common.sh"

# between LEAST MS MOST WHAT: within 3 % and 3 ms.
between() {
	(($2 >= $1 * 97 / 100 - 3 && $2 <= $3 * 103 / 100 + 3)) || fail "$4: $2 ms, not $1 to $3"
}

# said WORD: the milliseconds that the program has printed after the word.
said() { sed -n "s/^$1 //p" stdout; }

# sleeps PID: waits until the main thread of the process is in nanosleep, or clock_nanosleep.
sleeps() {
	until [[ $(cut -d' ' -f1 "/proc/$1/syscall") =~ ^(35|230)$ ]]; do kill -0 "$1"; done
}

# wall STATUS ARGUMENTS...: the sums are right, and no call of the program was interrupted.
wall() {
	local expected=$1
	shift
	status=0
	timeout "$limit" "$tool" cpu --folded --wall=kernel -o trace "$@" >stdout 2>stderr </dev/null || status=$?
	keep_sums
	equal status "$status" "$expected"
	equal expected "$(tick expected)" $(($(tick taken) + $(tick queued) + $(tick failed) + $(tick merged)))
	equal "lost traces" "$(value lost)" 0
	(($(value traces) > 0 && $(value traces) <= $(tick taken))) || fail "$(value traces) traces"
	! grep interrupted stdout || fail "a system call was interrupted"
	grep -q 'note: wall-clock time' stderr || fail "does not say what was sampled"
}

allowed() {
	status=0
	"$tool" cpu --folded --wall=kernel -o probe -- /bin/true 2>stderr || status=$?
	((status == 0)) || forbidden
	equal "status of a first run" "$status" 0
}

# The wait of 400 ms and all other time of parts(), in which the thread may also wait for a processor.
parts_are_right() {
	between 400 "$(spent_ms ';main;parts;rest;')" "$(said rest)" "waits"
	between "$(said parts)" "$(spent_ms ';main;parts[; ]')" "$(said parts)" "all of parts"
}

test_parts() {
	wall 7 -- "$target" parts
	parts_are_right
	(($(spent_ms ';main;parts;work') >= 195)) || fail "$(spent_ms ';work') ms of work, not 200"
	equal "rows of the vdso" "$("$tool" report -n 100 trace 2>&1 | grep -c '%  \+.*[[]vdso[]]')" 1
	# The dynamic loader begins with instructions whose callers are not described. There, too, the thread may wait
	# for a processor.
	equal "time without callers" "$(spent '^[[]callers unknown[]]')" "$(spent '^[[]callers unknown[]];(ld-|_start|_dl_)')"
	! grep ' failed: ' stderr | grep -v 'no unwind rule' || fail "some ticks have no trace"
	grep -q '^wall-clock profile of: ' stderr || fail "the report does not name its kind"
}

# Waits that are shorter than the interval are sampled as often as they should.
test_naps() {
	wall 7 -- "$target" naps
	waits_in sleep ';naps;nap[; ]' "$(said nap)" "short waits"
}

# in_state KIND REGEX: milliseconds in the contexts that match, of one state.
in_state() {
	"$tool" report -k "$1" --folded trace >/dev/null 2>&1
	spent_ms "$2"
}

# waits_in KIND REGEX MS WHAT: the contexts have that time. It is the wait of that kind, but for the time in which the
# thread runs or waits for a processor.
waits_in() {
	local all state others
	all=$(spent_ms "$2")
	between "$3" "$all" "$3" "$4"
	state=$(in_state "$1" "$2")
	others=$(($(in_state running "$2") + $(in_state runnable "$2")))
	((state + others >= all - 2 && state + others <= all + 2)) ||
		fail "$4: $state ms of $1 and $others ms without a wait, not $all"
	((state > 0)) || fail "$4: no $1"
}

test_lock() {
	wall 7 -- "$target" lock
	waits_in lock ';waiter;want_lock;.*lock' "$(said lock)" "waits for the lock"
}

# A lock that is held for 300 us, and reads from a pipe: waits that are shorter than the interval.
test_held() {
	wall 7 -- "$target" held
	waits_in lock ';want_often;want_held;.*lock' "$(said held)" "waits for the lock"
}

test_pipe() {
	wall 7 -- "$target" pipe
	waits_in I/O ';take_bytes;take_byte;.*read' "$(said pipe)" "reads"
}

# A thousand threads that wait for two seconds and more: each has its full time, and few traces. On a busy
# machine some reports are lost; then the tool looks where the threads wait, and the time before that is counted as
# failed.
test_crowd() {
	wall 7 -- "$target" crowd
	local seen
	seen=$(spent_ms ';sleeper;rest;')
	between 0 "$seen" "$(said crowd)" "waits"
	((seen + $(tick failed) >= 1940000)) || fail "$seen ms of waits"
	((seen > 1600000)) || fail "$(tick failed) ticks failed"
	# A wait that goes on has a trace for each 50 ticks.
	(($(value traces) * 10 < $(tick expected))) || fail "$(value traces) traces"
}

# What could not be recorded is counted: the sums are the lives of all threads. The main thread lives as long as
# the second one and while the program begins and ends, at most as long as the tool. If the first reports on the second
# thread are lost, as happens on a busy machine, its life seems to begin with the first one that is not.
test_flood() {
	local lived start whole
	start=$(date +%s%N)
	wall 7 -- "$target" flood
	whole=$((($(date +%s%N) - start) / 1000000))
	lived=$(said flood)
	between "$lived" "$(tick expected)" $((lived + whole)) "two threads"
	equal "time of contexts" "$(spent_ms .)" "$(tick expected)"
}

test_exec() {
	wall 7 -- "$target" exec parts
	parts_are_right
}

# A signal to the tool goes to the program, and the report is made.
test_signals() {
	"$tool" cpu --folded --wall=kernel -o trace -- "$target" signals >stdout 2>stderr &
	until grep -q ready stdout; do kill -0 $!; done
	kill -TERM $!
	status=0
	wait $! || status=$?
	equal status "$status" 3
	grep -q 'got 15' stdout || fail "the program did not get the signal"
	[[ -s trace.html ]] || fail "no report"
}

# The program gets what it would get without the tool.
test_bare() {
	cat >state <<-'END'
		grep -E '^(Sig[BIC]|Shd|Cap|Seccomp|NoNewPrivs)' /proc/self/status
		ls /proc/self/fd
		ulimit -a
		nice
		env | sort
	END
	bash state >bare </dev/null 2>stderr
	wall 0 -- bash state
	cmp bare stdout || fail "$(diff bare stdout)"
}

test_killed() {
	local child
	"$tool" cpu --folded --wall=kernel -o trace -- "$target" signals >stdout 2>stderr &
	until grep -q ready stdout; do kill -0 $!; done
	child=$(pgrep -P $! attach_wall) # not the worker of the tool
	sleeps "$child"
	sleep 0.1 # or longer
	kill -KILL "$child"
	status=0
	wait $! || status=$?
	equal status "$status" 137
	grep -q 'ended by signal 9' stderr || fail "does not say how the program ended"
	(($(spent_ms ';main;signals;rest;') > 0)) || fail "the wait is missing"
}

# Threads that wait since before the attachment.
test_running() {
	begin "$target" wait
	sleeps "$pid"
	wall 0 -d 0.5 -p "$pid"
	(($(spent_ms ';main;wait_for_ever;rest;') > 490)) || fail "$(spent_ms ';rest;') ms of rest"
	(($(spent_ms ';waiter;want_lock;.*lock') > 490)) || fail "$(spent_ms ';want_lock;') ms for the lock"
	equal failed "$(tick failed)" 0
	kill -0 "$pid" || fail "the program has ended"
}

test_threads() {
	wall 7 -t -- "$target" lock
	equal "contexts of no thread" "$(spent_ms .)" "$(spent_ms '^attach_wall')"
}

test_refusals() {
	refuses 2 'neither --mode' --wall=kernel --mode full -- "$target" parts
	refuses 2 'neither --mode' --wall=kernel --follow-children -- "$target" parts
	refuses 2 'no program given' --wall
	refuses 127 'no such program' --wall -- ./nowhere
	((UID == 0)) || return 0
	chmod 711 .
	status=0
	setpriv --reuid 65534 --clear-groups --bounding-set=-all "$tool" cpu --folded --wall=kernel -o /tmp/incstack-refused-$$ \
		-- /bin/true 2>stderr || status=$?
	(($(</proc/sys/kernel/perf_event_paranoid) < 2)) || {
		equal "status without rights" "$status" 126
		grep -q 'perf_event_paranoid is' stderr || fail "does not say what it needs: $(cat stderr)"
	}
}

run_test "$3"
