#!/bin/bash
# SPDX-License-Identifier: MIT
#
# heap_reports.sh TOOL TARGET NAME runs the function test_NAME in a new directory: what the report and its
# files show.
set -euo pipefail
tool=$1 target=$2

# shellcheck source=tests/tool/heap_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/heap_common.sh"

test_text_report() {
	record -o trace -- "$target" leak=50 alloc=300 mixed=10 leak=10 big=70000
	grep -q '^allocated 90.8 KiB in 381 calls$' stderr || fail "no total"
	grep -q '^at the peak 74.2 KiB, still live at exit 5.9 KiB$' stderr ||
		fail "no totals"
	grep -q '^temporary: 321 calls (84.3%)' stderr || fail "no temporary allocations"
	grep -Eq '^ +5.9 KiB +60 +0 +5.9 KiB +leak_blocks \(target\)$' stderr || fail "no leak"
	grep -Eq '^ +14.1 KiB +300 +300 +0 B +alloc_blocks \(target\)$' stderr || fail "no site"
	[[ $(wc -L <stderr) -le 200 ]] || fail "too wide"
	grep -Eq ';main;run_step;leak_blocks 6000$' trace.folded || fail "$(cat trace.folded)"
	# As wide as the terminal: script(1) makes one of 70 columns.
	if command -v script >/dev/null; then
		script -qec "stty cols 70; '$tool' report trace" /dev/null >wide </dev/null
		# On a busy machine a line of progress stands before what replaces it.
		sed -e 's/.*\x1b\[K//' -e '/^flame/d' wide | tr -d '\r' >lines
		[[ $(wc -L <lines) -le 70 ]] || fail "$(cat wide)"
	fi
}

# C++ names are readable, and operator new is not what allocates.
test_cxx_names() {
	record -o trace -- "$(dirname "$target")/../crosscheck/threads" 1
	equal status "$status" 0
	grep -q ';(anonymous namespace)::grow(unsigned int, unsigned int);' trace.folded ||
		fail "mangled"
	! grep -Eq '^ +[0-9.]+ [KM]iB +[0-9]+ +[0-9]+ +[0-9.]+ .*B +operator new' stderr ||
		fail "operator new is in the table"
}

# Without symbols all calls of one function still have one name: where it starts.
test_stripped() {
	strip -o stripped "$target"
	record -o trace -- ./stripped mixed=10 leak=1
	equal "functions of the program" \
		"$(grep -o 'stripped+0x[0-9a-f]*' trace.folded | sort -u | wc -l)" 7
	local start
	start=$(nm "$target" | awk '$3 == "leak_blocks" { print $1 }')
	grep -q "stripped+0x$(printf %x "0x$start") 100" trace.folded || fail "$(cat trace.folded)"
}

# Lines of folded stacks and the tower of the flame graph stay bounded, and no byte is lost.
test_deep_recursion() {
	record -o trace -- "$target" deep=20000
	equal status "$status" 0
	grep -q '^note: 19[0-9]* contexts have more than 512 frames;' stderr || fail "not said"
	[[ $(stat -c %s trace.folded) -lt 4000000 && $(stat -c %s trace.html) -lt 1000000 ]] ||
		fail "$(ls -l trace.*)"
	equal "bytes of recurse" "$(folded recurse)" 160000
	grep -q ';recurse;\[frames left out\];recurse;.*;recurse [0-9]*$' trace.folded ||
		fail "$(tail -n 1 trace.folded)"
	equal "frames of the longest line" \
		"$(awk -F ';' 'NF > most { most = NF } END { print most }' trace.folded)" 513
	record -o trace -- "$target" deep=400
	! grep -q 'contexts have more than' stderr || fail "there are none"
	equal "bytes of recurse" "$(folded recurse)" 3200
}

# Counters that another process has overwritten are left out, and that is said.
test_damaged_counters() {
	record -o trace -- "$target" alloc=100
	unpack trace
	head -c 40 trace | dd of=trace bs=1 seek=$((4096 + 5 * 64)) conv=notrunc status=none
	"$tool" report --folded trace >shown
	grep -q '^warning: the counters of 1 threads are inconsistent' shown || fail "not said"
	! grep -Eq '[0-9]{12}' shown || fail "a number that cannot be"
}

# A file has its name when it is whole; until then it is that of before.
test_whole_files() {
	record -o trace -- "$target" alloc=50
	cp trace.html before
	(ulimit -f 2 && "$tool" report --folded trace) >shown 2>&1 && fail "it fitted" # SIGXFSZ
	cmp trace.html before || fail "another trace.html"
	(trap '' XFSZ && ulimit -f 2 && "$tool" report --folded trace) >shown 2>&1 && fail "it fitted"
	cmp trace.html before || fail "another trace.html"
	equal "temporary files" "$(find . -name '*.part')" ''
	# A symbolic link stays one, and permissions stay.
	mv trace.html elsewhere && ln -s elsewhere trace.html && chmod 600 elsewhere
	: >elsewhere
	"$tool" report --folded trace >shown || fail "status $?"
	[[ -L trace.html && -s elsewhere ]] || fail "the link was replaced"
	equal permissions "$(stat -c %a elsewhere)" 600
}

# Nobody reads the pipe, so the report would wait for ever.
test_report_is_ended() {
	local signal
	for signal in TERM:143 HUP:129 INT:130; do
		rm -f trace*
		mkfifo trace.folded
		# The shell starts what is in the background with SIGINT ignored.
		(trap - INT && exec "$tool" heap --folded -o trace -- "$target" alloc=50) \
			>stdout 2>stderr </dev/null &
		until [[ -e trace.html ]]; do sleep 0.1; done
		sleep 0.2
		kill "-${signal%:*}" $!
		status=0
		wait $! || status=$?
		equal "status after ${signal%:*}" "$status" "${signal#*:}"
	done
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
