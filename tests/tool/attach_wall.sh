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

# near MS EXPECTED WHAT: within 3 % and 3 ms.
near() {
	(($1 >= $2 * 97 / 100 - 3 && $1 <= $2 * 103 / 100 + 3)) || fail "$3: $1 ms, not $2"
}

# wall STATUS ARGUMENTS...: the sums are right, and no call of the program was interrupted.
wall() {
	local expected=$1
	shift
	status=0
	timeout 60 "$tool" cpu --wall -o trace "$@" >stdout 2>stderr </dev/null || status=$?
	keep_sums
	equal status "$status" "$expected"
	equal expected "$(tick expected)" $(($(tick taken) + $(tick queued) + $(tick failed) + $(tick lost)))
	equal "lost traces" "$(value lost)" 0
	(($(value traces) > 0 && $(value traces) <= $(tick taken))) || fail "$(value traces) traces"
	! grep interrupted stdout || fail "a system call was interrupted"
	grep -q 'note: wall-clock time' stderr || fail "does not say what was sampled"
}

allowed() {
	status=0
	"$tool" cpu --wall -o probe -- /bin/true 2>stderr || status=$?
	((status == 0)) || forbidden
	equal "status of a first run" "$status" 0
}

test_parts() {
	wall 7 -- "$target" parts
	near "$(spent_ms ';main;parts;rest;')" "$(sed -n 's/^rest //p' stdout)" "waits"
	(($(spent_ms ';main;parts;work') >= 195)) || fail "$(spent_ms ';work') ms of work, not 200"
	# The dynamic loader begins with instructions whose callers are not described.
	(($(tick failed) <= 2 && $(value truncated) <= 2)) || fail "some traces have no callers"
	grep -q '^wall-clock profile of: ' stderr || fail "the report does not name its kind"
}

# Waits that are shorter than the interval are sampled as often as they should.
test_naps() {
	wall 7 -- "$target" naps
	near "$(spent_ms ';nap;')" "$(sed -n 's/^nap //p' stdout)" "short waits"
}

test_lock() {
	wall 7 -- "$target" lock
	near "$(spent_ms ';waiter;want_lock;.*lock')" "$(sed -n 's/^lock //p' stdout)" "waits for the lock"
}

# A thousand threads that wait: each has its full time, and few traces. On a busy machine some reports are
# lost; then the tool looks where the threads wait, and the time before that is counted as failed.
test_crowd() {
	wall 7 -- "$target" crowd
	near $(($(spent_ms ';sleeper;rest;') + $(tick failed))) 1000000 "waits"
	(($(spent_ms ';sleeper;rest;') > 800000)) || fail "$(tick failed) ticks failed"
	(($(value traces) < 100000)) || fail "$(value traces) traces"
}

# What could not be recorded is counted: the sums are the lives of all threads.
test_flood() {
	wall 7 -- "$target" flood
	local lived
	lived=$(sed -n 's/^flood //p' stdout)
	(($(tick expected) >= lived * 2 - lived / 50 && $(tick expected) <= lived * 2 + 60)) ||
		fail "$(tick expected) ticks of two threads in $lived ms"
	equal "time of contexts" "$(spent_ms .)" "$(tick expected)"
}

test_exec() {
	wall 7 -- "$target" exec parts
	near "$(spent_ms ';main;parts;rest;')" "$(sed -n 's/^rest //p' stdout)" "waits"
}

# A signal to the tool goes to the program, and the report is made.
test_signals() {
	"$tool" cpu --wall -o trace -- "$target" signals >stdout 2>stderr &
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
	"$tool" cpu --wall -o trace -- "$target" signals >stdout 2>stderr &
	until grep -q ready stdout; do kill -0 $!; done
	pkill -KILL -P $! || fail "no child"
	status=0
	wait $! || status=$?
	equal status "$status" 137
	grep -q 'ended by signal 9' stderr || fail "does not say how the program ended"
	(($(spent_ms ';main;signals;rest;') > 0)) || fail "the wait is missing"
}

# Threads that wait since before the attachment.
test_running() {
	begin "$target" wait
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
	refuses 2 'neither --mode' --wall --mode full -- "$target" parts
	refuses 2 'neither --mode' --wall --follow-children -- "$target" parts
	refuses 2 'no program given' --wall
	refuses 127 'no such program' --wall -- ./nowhere
	((UID == 0)) || return 0
	chmod 711 .
	status=0
	setpriv --reuid 65534 --clear-groups --bounding-set=-all "$tool" cpu --wall -o /tmp/incstack-refused-$$ \
		-- /bin/true 2>stderr || status=$?
	(($(</proc/sys/kernel/perf_event_paranoid) < 2)) || {
		equal "status without rights" "$status" 126
		grep -q 'perf_event_paranoid is' stderr || fail "does not say what it needs: $(cat stderr)"
	}
}

run_test "$3"
