#!/bin/bash
# SPDX-License-Identifier: MIT
#
# jit.sh TOOL TARGET NAME runs the function test_NAME in a new directory. TARGET makes code at run time and
# tells its name as runtimes tell it to perf; see jit_target.c.
set -euo pipefail
tool=$1 target=$2 command=cpu

# shellcheck source=tests/tool/attach_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/attach_common.sh"

allowed() { :; }

# record HOW: the recorder takes traces of functions that the code calls, not of the code itself.
record() {
	status=0
	"$tool" cpu --folded -o trace -- "$target" "$1" 0.5 >stdout 2>stderr || status=$?
	equal status "$status" 0
	rm -f "/tmp/perf-$(cat stdout).map"
	(($(spent ';inner;spin ') > 0)) || fail "no trace"
}

test_map() {
	record map
	equal "time in spin" "$(spent ';inner;spin ')" "$(spent '\<made at run time;work;inner;spin ')"
}

test_dump() {
	record dump
	equal "time in spin" "$(spent ';inner;spin ')" "$(spent '\<made at run time;work;inner;spin ')"
}

# The file of an earlier process with the same number, and one that somebody has put there.
test_foreign() {
	local how
	# shellcheck disable=SC2046 # two words, or none
	for how in old link open $( ((EUID != 0)) || echo stranger); do
		record "$how"
		equal "named by $how" "$(spent 'made at run time')" 0
		[[ $how == old ]] || grep -q 'perf-[0-9]*.map are not used: it ' stderr || fail "$how: not said"
		(($(spent '\<0x[0-9a-f]*;work;inner;spin ') > 0)) || fail "no address"
	done
}

# The map of a process belongs to its user, and root's tool believes it; but not one of another user.
test_other_users() {
	((EUID == 0)) || return 0
	local user
	cp "$target" jit
	chmod 755 . jit
	for user in 65534 65533; do
		begin setpriv --reuid=65534 --regid=65534 --clear-groups ./jit "map" 1000
		chown $user "/tmp/perf-$pid.map"
		attach_while 40
		rm -f "/tmp/perf-$pid.map"
		if [[ $user == 65534 ]]; then
			(($(spent '\<made at run time ') > 0)) || fail "no time in the code"
		else
			equal "named by a stranger" "$(spent 'made at run time')" 0
		fi
	done
}

# Attached to a process that wrote its file long ago. The kernel samples the code itself, too.
test_running() {
	begin "$target" old 1000
	attach_while 40
	adds_up
	rm -f "/tmp/perf-$pid.map"
	(($(spent '\<made at run time ') > 0)) || fail "no time in the code"
	(($(spent '\<made at run time;work;inner;spin ') > 0)) || fail "no time below the code"
	equal "no trace" "$(spent 'no trace')" 0
}

run_test "$3"
