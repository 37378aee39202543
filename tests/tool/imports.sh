#!/bin/bash
# SPDX-License-Identifier: MIT
#
# imports.sh TOOL TARGET NAME runs the function test_NAME in a new directory: files that other programs have just
# written, against what these programs say of them.
set -euo pipefail
tool=$1 target=$2
cd "$(mktemp -d)" || exit 1
trap 'rm -rf "$PWD"' EXIT

# shellcheck source=tests/tool/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

needs() { command -v "$1" >/dev/null || { echo "skipped: no $1"; exit 77; }; }

program=("$target" alloc=10 below=3:5 alloc=200)

# total FILE KIND: the sum of all contexts.
total() {
	"$tool" convert -f folded -k "$2" "$1" - 2>/dev/null | awk '{ sum += $NF } END { printf "%.0f\n", sum }'
}

# What ms_print prints is rounded, so the sums come from the file.
test_massif() {
	needs valgrind
	valgrind --tool=massif --threshold=0 --massif-out-file=ms.out "${program[@]}" >/dev/null 2>stderr || fail "$?"
	equal "live at the peak" "$(total ms.out 'live at peak')" \
		"$(awk -F'[ :]+' '/^heap_tree=peak/ { on = 1; next } on { print $2; exit }' ms.out)"
	gzip ms.out
	equal "packed" "$(total ms.out.gz 'live at peak')" "$(gunzip -c ms.out.gz | sed -n '/^heap_tree=peak/{n;s/^n[0-9]*: \([0-9]*\).*/\1/p}')"
	"$tool" report ms.out.gz | grep -q '^live at peak: '
}

test_dhat() {
	local sums
	needs valgrind
	valgrind --tool=dhat --dhat-out-file=dhat.out "${program[@]}" >/dev/null 2>stderr || fail "$?"
	sums=$(python3 -c '
import json
points = json.load(open("dhat.out"))["pps"]
print(*(sum(p[key] for p in points) for key in ("tb", "tbk", "gb", "eb")))')
	equal "sums" "$(total dhat.out allocated) $(total dhat.out allocations) $(total dhat.out 'live at peak') $(total \
		dhat.out 'live at exit')" "$sums"
	grep -q "\"te\"" dhat.out
}

# heaptrack_print rounds what it prints, but for the number of calls, so the bytes come from its flame graphs.
test_heaptrack() {
	local file
	needs heaptrack
	needs heaptrack_print
	heaptrack -o ht "${program[@]}" >/dev/null 2>stderr || fail "$?"
	file=$(echo ht.*)
	for pair in allocations:allocations leaked:'live at exit' peak:'live at peak'; do
		heaptrack_print -p 0 -a 0 -T 0 -l 0 --disable-builtin-suppressions --disable-embedded-suppressions \
			--flamegraph-cost-type "${pair%%:*}" -F "flame" "$file" >said 2>stderr || fail "$?"
		equal "${pair#*:}" "$(total "$file" "${pair#*:}")" \
			"$(awk '{ sum += $NF } END { printf "%.0f\n", sum }' flame)"
	done
	"$tool" compare "$file" "$file" >said
}

test_perf() {
	needs perf
	perf record -q -e cpu-clock:u -F 999 -g -o perf.data -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done' \
		>/dev/null 2>stderr || { echo "skipped: perf may not record here"; exit 77; }
	perf script -i perf.data >perf.txt 2>stderr
	equal samples "$(total perf.txt samples)" "$(grep -c 'cpu-clock:u: *$' perf.txt)"
	equal "time" "$(total perf.txt cpu-clock:u)" \
		"$(awk '/cpu-clock:u: *$/ { sum += $(NF - 1) } END { printf "%.0f\n", sum }' perf.txt)"
}

test_says_what_is_wrong() {
	local status=0
	printf 'v 1 3\nt 1 0\n' >bad
	"$tool" report bad >stdout 2>stderr || status=$?
	equal status $status 1
	equal lines "$(wc -l <stderr)" 1
	grep -q 'bad: a trace of something that is not there (line 2, byte 6)' stderr || fail "the message"
	printf 'a;b 3\n' >fine.folded
	for format in perf-script heaptrack massif dhat; do
		status=0
		"$tool" convert -f "$format" fine.folded out >stdout 2>stderr || status=$?
		equal status $status 2
		grep -q 'can be read, but not written' stderr || fail "the message for $format"
		[[ ! -e out ]] || fail "a file"
	done
}

# A pprof file is known by its content, whatever its name is.
test_pprof_by_content() {
	local name
	printf 'a;b 3\na;c 4\n' >fine.folded
	"$tool" convert fine.folded out.pb.gz
	"$tool" report out.pb.gz >right
	cp out.pb.gz go.heap.gz
	gzip -dc out.pb.gz >raw
	for name in go.heap.gz raw; do
		"$tool" report $name >stdout || fail "$name is refused"
		cmp stdout right || fail "another report"
		"$tool" compare $name out.pb.gz >stdout || fail "$name cannot be compared"
	done
}

# A packed name would promise what is not done.
test_written_plain() {
	local status=0
	printf 'a;b 3\n' >fine.folded
	"$tool" convert fine.folded out.speedscope.json.gz >stdout 2>stderr || status=$?
	equal status $status 2
	grep -q 'out.speedscope.json.gz: profiles are read packed, but written plain' stderr || fail "the message"
	[[ ! -e out.speedscope.json.gz ]] || fail "a file"
	"$tool" convert fine.folded out.pb.gz
}

"test_$3"
