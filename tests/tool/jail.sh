#!/bin/bash
# SPDX-License-Identifier: MIT
#
# jail.sh TOOL TARGET NAME runs the function test_NAME in a new directory: reports on what somebody else
# has prepared. Each `timeout` is for a tool that would wait for ever.
set -euo pipefail
tool=$1 target=$2

# shellcheck source=tests/tool/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# record PROGRAM...: a trace.
record() { "$tool" heap --folded -o trace -- "$@" >stdout 2>stderr || fail "status $?"; }

report() {
	status=0
	timeout 250 "$tool" report --folded trace >shown 2>stderr || status=$?
	equal status "$status" 0
}

# As the user `nobody`, of whom root must not believe anything.
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

# The module of the trace is now something that a reader would wait for, or that has effects.
test_modules_that_are_no_files() {
	local what
	cp "$target" program
	record ./program alloc=50
	grep -q ';main;' trace.folded || fail "no names"
	for what in fifo link_to_fifo device directory; do
		rm -rf program other
		case $what in
		fifo) mkfifo program ;;
		link_to_fifo) mkfifo other && ln -s other program ;;
		device) ln -s /dev/zero program ;;
		directory) mkdir program ;;
		esac
		report
		grep -q 'program+0x' trace.folded || fail "$what: no addresses"
		! grep -q ';main;' trace.folded || fail "$what: names"
	done
}

# No trace is a pipe, and a spool is none either.
test_traces_that_are_no_files() {
	mkfifo trace
	status=0
	timeout 250 "$tool" report --folded trace >shown 2>stderr || status=$?
	equal status "$status" 1
	equal said "$(cat stderr)" "incstack: cannot read trace: it is not a regular file"
	rm trace
	record "$target" alloc=50
	mkfifo trace.live
	report
}

# A program that replaces itself while it is recorded.
test_program_becomes_fifo() {
	cp "$target" program
	cat >script <<-'EOT'
		./program alloc=20
		rm program
		mkfifo program
	EOT
	timeout 250 "$tool" heap --folded --follow-children -o trace -- bash script >stdout 2>stderr || fail "status $?"
	tail -n 1 stderr | grep -q '^incstack: traces=' || fail "no report"
}

# What other users put where the files of a recording are looked for, and where its outputs come.
test_traps() {
	local name
	chmod 777 .
	mkfifo trace.1.2
	ln -s /dev/zero trace.3.4
	timeout 250 "$tool" heap --folded -o trace -- "$target" alloc=20 >stdout 2>stderr || fail "status $?"
	rm -f trace.1.2 trace.3.4
	((EUID == 0)) || return 0
	echo precious >precious
	for name in trace.html trace.folded; do
		rm -f "$name"
		as_nobody ln -s precious "$name"
		status=0
		timeout 250 "$tool" report --folded trace >shown 2>stderr || status=$?
		equal "status with $name" "$status" 1
		grep -q "cannot write trace" stderr || fail "not said"
		rm -f "$name"
		as_nobody mkfifo "$name"
		status=0
		timeout 250 "$tool" report --folded trace >shown 2>stderr || status=$?
		equal "status with a FIFO $name" "$status" 1
		rm -f "$name"
	done
	equal content "$(cat precious)" precious
}

# A trace of another user that has the name of one of this run's processes, and was begun in the future.
test_trace_of_another_user() {
	((EUID == 0)) || return 0
	chmod 777 .
	as_nobody "$tool" heap --folded -o stranger -- "$target" alloc=7777 >stdout 2>stderr || fail "status $?"
	python3 -B - stranger trace.1.1 <<'P'
import struct, sys, time
data = bytearray(open(sys.argv[1], "rb").read())
start = int(time.time())
for at in range(8, 128, 8):  # the time of its beginning, in nanoseconds
    if abs(struct.unpack_from("<Q", data, at)[0] // 10**9 - start) < 600:
        struct.pack_into("<Q", data, at, (start + 3600) * 10**9)
        break
else:
    sys.exit("no time")
open(sys.argv[2], "wb").write(data)
P
	chown 65534 trace.1.1
	"$tool" heap --folded -o trace -- "$target" alloc=20 >stdout 2>stderr || fail "status $?"
	equal "lines" "$(grep -c 'trace.1.1 belongs to another user, so it is left out' stderr)" 1
	! grep -q 7777 stderr || fail "the other user's allocations are in the report"
}

# begin_report: its broker waits for a reader of the flame graph, so the worker lives; its number is $worker.
begin_report() {
	record "$target" alloc=50
	rm trace.html
	mkfifo trace.html
	"$tool" report --folded trace >shown 2>stderr &
	broker=$!
	worker=
	until [[ -n $worker ]] && grep -q '^nonewprivs:1$' <(field); do
		sleep 0.1
		kill -0 "$broker" || fail "it has ended"
		worker=$(pgrep -P "$broker" || true)
	done
	# Once it has printed the text of the report, it waits for the output.
	until [[ -s shown ]]; do sleep 0.1; done
}

# The fields of the worker's status: name:value.
field() { tr -d ' \t' <"/proc/$worker/status" | tr '[:upper:]' '[:lower:]'; }

end_report() {
	status=0
	wait "$broker" || status=$?
}

test_worker_has_no_rights() {
	begin_report
	field >fields
	kill "$broker"
	end_report
	grep -q '^capeff:0*$' fields || fail "capabilities"
	grep -q '^capprm:0*$' fields || fail "capabilities"
	if ((EUID == 0)); then
		grep -q '^uid:65534655346553465534$' fields || fail "user"
		grep -q '^gid:65534655346553465534$' fields || fail "group"
	fi
	grep -q '^seccomp:2$' fields || fail "no filter"
}

# Whatever ends the worker, there is one line, a status, and no part of a file.
test_worker_is_killed() {
	begin_report
	kill -SEGV "$worker"
	cat trace.html >/dev/null & # the broker does not wait any more
	end_report
	equal status "$status" 1
	equal said "$(cat stderr)" "incstack: the reader of trace was ended by signal 11 (Segmentation fault)"
	[[ -z $(find . -name '*.part') ]] || fail "a temporary file"
	kill -0 "$worker" 2>/dev/null && fail "the worker lives"
	return 0
}

# No worker outlives its broker.
test_broker_is_killed() {
	begin_report
	kill -KILL "$broker"
	end_report
	equal status "$status" 137
	until ! kill -0 "$worker" 2>/dev/null; do sleep 0.1; done
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
