#!/bin/bash
# SPDX-License-Identifier: MIT
#
# cpu_events.sh TOOL TARGET NAME runs the function test_NAME in a new directory: CPU profiles whose ticks come from
# the kernel's events. TARGET does what a program may do with SIGTRAP, descriptors and limits; what it prints must
# be the same without the profiler. Where the kernel has or permits no events, the tests are skipped (77).
set -euo pipefail
tool=$1 target=$2

# shellcheck source=tests/tool/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# record ARGUMENTS...: incstack cpu, whatever its exit status, which is in $status.
record() {
	status=0
	timeout 280 "$tool" cpu --ticks any --folded -o trace "$@" >stdout 2>stderr </dev/null || status=$?
	! grep -E 'the kernel permits no events|this kernel has no events' stderr || exit 77
	keep_sums
}

adds_up() {
	equal expected "$(tick expected)" \
		$(($(tick taken) + $(tick queued) + $(tick failed) + $(tick merged)))
	equal traces "$(value traces)" "$(tick taken)"
	equal mismatches "$(value mismatches)" 0
}

# same CASE...: the case prints the same with and without the profiler.
same() {
	"$target" "$@" >wanted || fail "$1 fails by itself"
	record --follow-children --crosscheck="${walker:-own}" -- "$target" "$@"
	equal "status of $1" "$status" 0
	diff wanted stdout >&2 || fail "$1 differs"
	adds_up
}

noted() { grep -q "^note: .*$1" stderr || fail "no note: $1"; }
not_noted() { ! grep -q "^note: .*$1" stderr || fail "a note: $1"; }

# A clock of 4 ms gives a quarter of the samples, with events there are nearly all. Some are missing where the
# events do not see the kernel.
test_interval() {
	record -- "$target" spin
	equal status "$status" 0
	adds_up
	(($(tick expected) >= 290)) || fail "ticks are missing"
	((10 * $(tick taken) >= 6 * $(tick expected))) || fail "samples are missing"
	(($(spent ';spin ') * 10 >= $(spent .) * 9)) || fail "$(cat trace.folded)"
	not_noted SIGTRAP
}

test_forced_timers() {
	record --ticks timers -- "$target" spin
	adds_up
	! grep '^note' stderr || fail "a note"
	grep -q 'SIGTRAP' <<<"$("$tool" cpu --help)" || fail "no help"
	! "$tool" cpu --ticks clocks -- true 2>stderr || fail "clocks are accepted"
	equal message "$(cat stderr)" "incstack: --ticks takes events, timers or any, not 'clocks'
incstack: see incstack cpu --help"
}

# reason: EVENTS_GIVEN_UP
test_own_handler() {
	same own_handler
	noted 'uses SIGTRAP itself'
}

test_defaults() { same defaults; }

test_waits() {
	same waits
	noted 'uses SIGTRAP itself'
}

# The thread that blocks SIGTRAP is sampled by its timer.
test_blocked() {
	same blocked
	(($(spent ';spin_blocked;spin ') >= 50000000)) || fail "$(cat trace.folded)"
}

test_execute() { same execute 8; }
# libunwind, which also crosschecks, opens some.
test_descriptors() { walker=no same descriptors; }
test_limits() { same limits; }

test_raw() {
	same raw
	noted 'uses SIGTRAP itself'
}

# reason: EVENTS_RESTRICTED
test_filtered() {
	same filtered
	noted 'seccomp filter, so timers'
}

test_vforks() { same vforks; }

# reason: EVENTS_UNSAFE
# The program ignores SIGTRAP from the start, as do those that it executes.
test_ignored() {
	trap '' TRAP
	same defaults
	trap - TRAP
	noted 'ignores SIGTRAP'
}

# reason: EVENTS_FORBIDDEN
test_forbidden() {
	status=0
	"$target" forbid "$tool" cpu --ticks any -o trace -- "$target" spin >stdout 2>stderr || status=$?
	keep_sums
	equal status "$status" 0
	grep -q '^note: the kernel permits no events here' stderr || fail "no note"
	adds_up
	(($(tick expected) > 0)) || fail "ticks are missing"
}

# A user who is not root may have events that do not tick in the kernel. Timers sample the rest.
test_user() {
	((UID == 0)) || exit 77
	chmod 777 .
	mkdir bin
	cp "$tool" "$(dirname "$tool")"/libincstack_{preload,recorder}.so "$target" bin || exit 77
	setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null || exit 77
	status=0
	setpriv --reuid=65534 --regid=65534 --clear-groups bin/incstack cpu --ticks any --folded -o "$PWD/trace" \
		-- "bin/$(basename "$target")" mixed >stdout 2>stderr || status=$?
	! grep -E 'the kernel permits no events|this kernel has no events' stderr || exit 77
	keep_sums
	equal status "$status" 0
	adds_up
	if grep -q '^note: the kernel.s events may not see time in the kernel' stderr; then
		grep -q 'merged: time in the kernel' stderr || fail "no share of the kernel"
	fi
	local calls
	calls=$(spent ';calls')
	((10 * calls >= 3 * $(spent .) && 10 * calls <= 7 * $(spent .))) || fail "$(cat trace.folded)"
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
