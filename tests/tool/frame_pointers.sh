#!/bin/bash
# SPDX-License-Identifier: MIT
#
# frame_pointers.sh TOOL TARGET NAME runs the function test_NAME in a new directory: traces through code without unwind
# rules, by frame pointers. TARGET makes such code; see frame_pointers.c.
set -euo pipefail
tool=$1 target=$2 command=cpu

# shellcheck source=tests/tool/attach_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/attach_common.sh"

allowed() { :; }

# record COMMAND...: incstack cpu, from inside.
record() {
	status=0
	timeout "$limit" "$tool" cpu --folded -o trace -- "$@" >stdout 2>stderr </dev/null || status=$?
	keep_sums
}

forget_names() { rm -f "/tmp/perf-$(cat "$1").map"; }

# All time in the made code has its callers.
whole() {
	(($(spent ';made_inner ') > 0)) || fail "no time in the made code"
	equal "whole chains" "$(spent ';main;keep;made_outer;made_inner ')" "$(spent '\<made_inner ')"
	grep -q 'found by frame pointers' stderr || fail "not said"
	grep -q '(fp) made_outer' stderr || fail "not marked"
	! grep -q 'leads nowhere' stderr || fail "an end that is none"
}

# Interrupted at its first instruction, or at its last, the code is left by the stack pointer, rightly.
nowhere() {
	local all
	all=$(spent '\<made_liar ')
	((all > 0)) || fail "no time in the code that lies"
	equal "marked or right" "$all" \
		"$(spent '^\[callers unknown: frame pointer\];made_liar |;main;lie;made_liar ')"
	(($(spent '^\[callers unknown: frame pointer\];made_liar ') > 0)) || fail "no end at a pointer"
	grep -q 'end where a frame pointer leads nowhere' stderr || fail "not said"
}

test_kept() {
	record "$target" keeps 0.4
	forget_names stdout
	equal status "$status" 0
	whole
}

test_kept_by_kernel() {
	begin "$target" keeps 1000
	attach_while 30
	forget_names begun
	whole
}

test_lies() {
	record "$target" lies 0.6
	forget_names stdout
	equal status "$status" 0
	nowhere
}

test_lies_to_kernel() {
	begin "$target" lies 1000
	attach_while 30
	forget_names begun
	nowhere
}

# Nine tenths of all time have callers up to the beginning of a thread.
mostly_whole() {
	local all unknown
	all=$(spent .)
	unknown=$(spent '^\[')
	((all > 0 && unknown * 10 <= all)) || fail "callers of $unknown of $all are unknown"
}

test_node() {
	command -v node >/dev/null || exit 77
	cat >hot.js <<-'END'
		function inner(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) * (i % 7); return s; }
		function outer(k) { let t = 0; for (let i = 0; i < k; i++) t += inner(200000); return t; }
		const end = process.cpuUsage().user + 500000;
		let sum = 0;
		while (process.cpuUsage().user < end) sum += outer(10);
		console.log(process.pid);
	END
	record node --perf-basic-prof --interpreted-frames-native-stack hot.js
	forget_names stdout
	equal status "$status" 0
	mostly_whole
	(($(spent 'JS:.?inner .*hot.js') > 0)) || fail "no time in JavaScript"
	equal "its callers" "$(spent 'JS:.?inner .*hot.js')" "$(spent '^_start;.*JS:.?inner .*hot.js')"
}

# A static program without unwind rules: the kernel samples it.
test_go() {
	command -v go >/dev/null || exit 77
	cat >loop.go <<-'END'
		package main

		//go:noinline
		func leaf(x uint64) uint64 { return x*2862933555777941757 + 3037000493 }

		//go:noinline
		func middle(x uint64) uint64 {
			for i := 0; i < 1000000; i++ {
				x = leaf(x)
			}
			return x
		}

		func main() {
			x := uint64(1)
			for i := 0; i < 300; i++ {
				x = middle(x)
			}
			println(x)
		}
	END
	timeout 200 go build -o loop loop.go || exit 77
	record ./loop
	forbidden
	equal status "$status" 0
	mostly_whole
	# The leaf keeps no frame pointer.
	(($(spent 'main.main;main.middle;main.leaf ') > 0)) || fail "no time in the leaf"
	equal "callers of the leaf" "$(spent ';main.leaf ')" "$(spent 'main.middle;main.leaf ')"
}

run_test "$3"
