#!/bin/bash
# SPDX-License-Identifier: MIT
#
# source.sh TOOL TARGET NAME runs the function test_NAME in a new directory. The report says in which line of
# which file a block was allocated, and which functions were inlined there. TARGET is the C program,
# TARGET_cpp the C++ program.
set -euo pipefail
tool=$1 target=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=tests/tool/common.sh
. "$here/common.sh"

# record PROGRAM...
record() { "$tool" heap -o trace -- "$@" >stdout 2>stderr </dev/null || fail "status $?"; }

# line MARK FILE: the number of the line with this comment.
line() { grep -n "/\* $1 \*/" "$here/$2" | cut -d: -f1; }

# contexts: those of the trace by their calls, each in one line: the calls, then its frames, innermost first.
contexts() {
	"$tool" convert trace contexts.speedscope.json 2>stderr || fail "status $?"
	python3 -B - <<'P'
import json, os
profile = json.load(open("contexts.speedscope.json"))
frames = [f["name"] + (f" {os.path.basename(f['file'])}:{f['line']}" if "line" in f else "")
          for f in profile["shared"]["frames"]]
for kind in profile["profiles"]:
    if kind["name"].startswith("allocations"):
        for stack, calls in zip(kind["samples"], kind["weights"]):
            print(calls, *(frames[i] for i in reversed(stack)), sep=";")
P
}

# has WHAT PREFIX: one context begins so.
has() {
	local count
	count=$(contexts | awk -v prefix="$2" 'index($0, prefix) == 1' | wc -l)
	[[ $count == 1 ]] || fail "$1: $count contexts begin with $2:
$(contexts)"
}

test_inlined() {
	local file=source_target.cpp
	cp "${target}_cpp" prog
	record ./prog
	has "two levels" "100;store::Table::take(unsigned long) $file:$(line take $file);void* store::fill<store::Table>(store::Table&, unsigned long) $file:$(line fill $file);work(store::Table&) $file:$(line work $file);main $file:$(line main $file);"
}

test_lines() {
	local file=source_target.c
	cp "$target" prog
	record ./prog
	has "two calls in a line" "200;places $file:$(line both $file);main $file:$(line main $file);"
	has "a call in the next line" "100;get $file:$(line get $file);places $file:$(line one $file);main $file:$(line main $file);"
}

# The functions and the folded stacks know no lines: each function is there once.
test_functions() {
	local file=source_target.c
	cp "$target" prog
	record ./prog
	equal "rows of places" "$("$tool" report trace 2>/dev/null | sed '/hottest contexts/,$d' | grep -c ' places$')" 1
	"$tool" convert trace converted.folded 2>stderr || fail "status $?"
	equal "stacks of places" "$(grep -c ';places [0-9]*$' converted.folded)" 1
	equal "bytes of places" "$(awk '/;places [0-9]+$/ { print $NF }' converted.folded)" 20000
	equal "bytes of get" "$(awk '/;places;get [0-9]+$/ { print $NF }' converted.folded)" 10000
}

# Contexts that differ only in the depth of a recursion are one, with the sum of their weights.
test_recursion() {
	printf '%s\n' '#include <stdlib.h>' 'void *volatile p;' '#define END __asm__ volatile("")' \
		'__attribute__((noinline, noclone)) static void walk(int n)' \
		'{ if (n > 0) { walk(n - 1); p = malloc(10); } END; }' \
		'__attribute__((noinline, noclone)) static void even(int n);' \
		'__attribute__((noinline, noclone)) static void odd(int n) { if (n > 0) even(n - 1); p = malloc(5); END; }' \
		'__attribute__((noinline, noclone)) static void even(int n) { if (n > 0) odd(n - 1); END; }' \
		'int main(void) { walk(50); even(30); p = malloc(3); return 0; }' >r.c
	cc -O1 -g -fno-optimize-sibling-calls -o prog r.c
	record ./prog
	"$tool" report -k 'live at exit' -n 10 trace >said 2>stderr
	grep -Eq '^ +500 B +86.5% walk' said || fail "walk: $(<said)"
	grep -Eq '^ +75 B +13.0% odd' said || fail "odd: $(<said)"
	equal "contexts" "$(grep -cE '^ +[0-9]+ B +[0-9.]+% ' said)" 3
	equal "walks" "$(grep -c '^ *and 49 more, which differ in the depth of the recursion$' said)" 1
	equal "odd ones" "$(grep -c '^ *and 14 more, which differ in the depth of the recursion$' said)" 1
}

# The other formats have the lines, too.
test_formats() {
	local file=source_target.c
	cp "$target" prog
	record ./prog
	"$tool" convert trace converted.speedscope.json 2>stderr || fail "status $?"
	grep -q "\"name\": *\"get\", *\"file\": *\"[^\"]*/$file\", *\"line\": *$(line get $file)[^0-9]" \
		converted.speedscope.json || fail "speedscope: no line of get"
	"$tool" convert trace converted.pb.gz 2>stderr || fail "status $?"
	"$tool" convert converted.pb.gz again.speedscope.json 2>stderr || fail "status $?"
	grep -q "\"name\": *\"get\", *\"file\": *\"[^\"]*/$file\", *\"line\": *$(line get $file)[^0-9]" \
		again.speedscope.json || fail "pprof: no line of get"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"test_$3"
