#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh TOOL MODE PROGRAM ARGS: runs the program under the recorder. It must succeed as it
# does without the recorder, and each of its traces must equal a full walk. It runs three
# times: without walks, because an event that is compared with a walk takes no fast path, and
# with each of the two walkers. The source of a program has lines that begin with
# "incstack heap", and tell what is special about it:
#   options: OPTIONS          more options of incstack heap
#   traces: N, returns: N     at least so many
#   truncates at most: N, stale at most: N
#   equal: NAME NAME          two functions or modules through which the same is allocated
#   says: TEXT, does not say: TEXT
#   is not checked            no walkers
#   loses samples
#   shares no slot            the slot that threads share must stay empty (tracefile/format.h)
#   varies                    the number of traces varies
#   walks fully               most samples are on unknown stacks
#   leaves unchecked: N       traces of libc's own threads
#   mode: MODE                the mode at the end, if it is not that of the command line
#   preload: FILE             a library of plugins/ that is preloaded after the recorder
#   chooses its seed          of the samples, as without INCSTACK_SEED
set -eu
# The recorded and the crosschecked runs take the same samples.
export INCSTACK_SEED=1
tool=$1 mode=$2 program=$3
shift 2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source=$(ls "$(dirname "$0")/targets/$(basename "$program")".c* | head -n 1)
! grep -q 'incstack heap chooses its seed' "$source" || unset INCSTACK_SEED
options=$(sed -n 's/^.*incstack heap options: *//p' "$source")

fail() {
	echo "$(basename "$program"), mode $mode: $*" >&2
	cat "$directory/stderr" >&2
	exit 1
}

preload=$(sed -n 's/^.*incstack heap preload: *//p' "$source")
if test -n "$preload"; then
	LD_PRELOAD=$(dirname "$program")/$preload
	export LD_PRELOAD
fi

"$@" || fail "fails without the recorder"
value() {
	echo "$last" | sed -n "s/^incstack: .*\<$1=\([^ ]*\).*$/\1/p"
}
# Bytes that were allocated through a function or a module.
through() {
	awk -v name=";$1" 'index($0, name) { sum += $NF } END { print sum + 0 }' \
		"$directory/trace.folded"
}
all_equal() {
	test "$(through "$1")" -gt 0 && test "$(through "$1")" = "$(through "$2")"
}
last_slot_is_empty() {
	"$(dirname "$tool")/tests/tool/unpack" "$directory/trace"
	test "$(od -An -tu8 -j $((4096 + 1023 * 64)) -N 8 "$directory/trace" | tr -d ' ')" = 0
}
# record CHECK PROGRAM ARGS. Unquoted: any number of options.
record() {
	check=$1
	shift
	"$tool" heap --folded $check --mode "$mode" -o "$directory/trace" $options -- "$@" \
		>"$directory/stdout" 2>"$directory/stderr" || fail "exit status $?"
	last=$(tail -n 1 "$directory/stderr")
	test "$(value mismatches)" = 0 || fail "mismatches"
	! grep -q "invariant of the recorder was broken" "$directory/stderr" || fail "a broken invariant"
	if ! grep -q "incstack heap loses samples" "$source"; then
		test "$(value lost)" = 0 || fail "lost traces"
	fi
	own=$(sed -n 's/^.*incstack heap mode: *//p' "$source")
	test "$(value mode)" = "${own:-$mode}" || grep -q "incstack heap walks fully" "$source" ||
		fail "another mode"
	least=$(sed -n 's/^.*incstack heap traces: *//p' "$source")
	test "$(value traces)" -ge "${least:-1}" || fail "too few traces"
	least=$(sed -n 's/^.*incstack heap returns: *//p' "$source")
	test "$(value mode)" != patch || test "$(value returns)" -ge "${least:-1}" || fail "too few returns"
	most=$(sed -n 's/^.*incstack heap truncates at most: *//p' "$source")
	test -z "$most" || test "$(value truncated)" -le "$most" || fail "truncated traces"
	most=$(sed -n 's/^.*incstack heap stale at most: *//p' "$source")
	test -z "$most" || test "$(value stale)" -le "$most" || fail "stale barriers"
	names=$(sed -n 's/^.*incstack heap equal: *//p' "$source")
	test -z "$names" || all_equal $names || fail "not the same through $names"
	text=$(sed -n 's/^.*incstack heap says: *//p' "$source")
	test -z "$text" || grep -q "$text" "$directory/stderr" || fail "does not say: $text"
	text=$(sed -n 's/^.*incstack heap does not say: *//p' "$source")
	test -z "$text" || ! grep -q "$text" "$directory/stderr" || fail "says: $text"
	! grep -q "incstack heap shares no slot" "$source" || last_slot_is_empty || fail "shares a slot"
	echo "$last"
}

record "" "$@"
traces=$(value traces)
! grep -q "incstack heap is not checked" "$source" || exit 0
# crosscheck OPTION PROGRAM ARGS. Libunwind, which is loaded for the check, has let the dynamic
# linker's table of objects grow before the program loads its own, so that is one allocation less.
crosscheck() {
	record "$@"
	grep -qE "incstack heap (loses samples|varies)" "$source" ||
		test "$(value traces)" = "$traces" || test "$(value traces)" = $((traces - 1)) ||
		fail "$traces traces without $1"
	! grep -q "incstack heap loses samples" "$source" || return 0
	most=$(sed -n 's/^.*incstack heap leaves unchecked: *//p' "$source")
	test "$(value crosschecked)" -ge $(($(value traces) - ${most:-0})) ||
		fail "not every trace was checked by $1"
}
crosscheck --crosscheck "$@"
crosscheck --crosscheck=own "$@"
