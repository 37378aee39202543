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
