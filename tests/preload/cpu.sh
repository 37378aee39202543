#!/bin/sh
# SPDX-License-Identifier: MIT
# cpu.sh TOOL STUB PROGRAM ARGS: runs the program as a CPU profile does, with timers that count
# elapsed time, which tick far more often than those of CPU time can. The program must succeed, and
# each trace must equal a full walk. Lines of the program's source tell what is special about it:
#   incstack cpu walkers: WALKERS     only these, because libunwind's walk takes too long for every tick
#   incstack cpu truncates at most: N
#   incstack cpu depth: N             traces have at least so many frames on average
set -eu
tool=$1 stub=$2 program=$3
shift 2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source=$(ls "$(dirname "$0")/targets/$(basename "$program")".c* | head -n 1)
preload=$(sed -n 's/^.*incstack heap preload: *//p' "$source")
test -z "$preload" || stub=$stub:$(dirname "$program")/$preload

fail() {
	echo "$(basename "$program"), $check: $*" >&2
	cat "$directory/stderr" "$directory/report" >&2
	exit 1
}

number() {
	found=$(sed -n "s/^.* $1.*$/\1/p" "$directory/report")
	echo "${found:-0}"
}

walkers=$(sed -n 's/^.*incstack cpu walkers: *//p' "$source")
for check in no ${walkers:-libunwind own}; do
	rm -f "$directory"/*
	LD_PRELOAD=$stub \
		INCSTACK_HEAP="kind=1;elapsed=1;interval=100000;mode=patch;crosscheck=$check;file=$directory/trace" \
		"$@" >"$directory/stdout" 2>"$directory/stderr" || fail "exit status $?"
	"$tool" report "$directory/trace" >"$directory/report" 2>&1 || fail "no report"
	! grep -q "^warning: damaged" "$directory/report" || fail "a damaged file"
	! grep -q "invariant of the recorder was broken" "$directory/report" || fail "a broken invariant"
	! grep -q "by libunwind; [1-9][0-9]* differ" "$directory/report" || fail "mismatches"
	most=$(sed -n 's/^.*incstack cpu truncates at most: *//p' "$source")
	test -z "$most" || test "$(number 'callers of \([0-9]*\) frames')" -le "$most" ||
		fail "truncated traces"
	least=$(sed -n 's/^.*incstack cpu depth: *//p' "$source")
	test -z "$least" || test "$(number '\([0-9]*\)[.0-9]* frames deep')" -ge "$least" ||
		fail "traces with too few frames"
	grep "expected ticks" "$directory/report"
done
