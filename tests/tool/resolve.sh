#!/bin/bash
# SPDX-License-Identifier: MIT
#
# resolve.sh TOOL TARGET NAME runs the function test_NAME in a new directory: a trace file with names gives the
# reports without the program that were made with it.
set -euo pipefail
tool=$1 target=$2

# shellcheck source=tests/tool/heap_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/heap_common.sh"

# reports FILE FOLDER: all that is made of a trace file.
reports() {
	mkdir "$2"
	"$tool" report -o "$2/page" "$1" >"$2/text"
	"$tool" report -o "$2/full" --full "$1" >"$2/full.text"
	"$tool" report --json "$1" >"$2/json" 2>"$2/said"
	"$tool" convert "$1" "$2/profile.pb.gz" 2>>"$2/said"
}

# gone: the program is not where it was.
gone() {
	mv program elsewhere
	"$@"
	mv elsewhere program
}

test_at_the_end() {
	local command allocations=20000
	for command in heap cpu; do
		cp "$target" program
		"$tool" "$command" --resolve -o "$command" -- ./program leak=15 alloc=$allocations threads=2:3000 >stdout 2>stderr ||
			fail "status $?"
		reports "$command" "$command.here"
		gone reports "$command" "$command.there"
		diff -r "$command.here" "$command.there" || fail "another report without the program"
		grep -q 'target.c' "$command.there/json" || fail "no lines"
		! grep -q 'no longer exists' "$command.there/text" || fail "the file of a module is missed"
		allocations=5000000 # take some CPU time
	done
}

test_later() {
	cp "$target" program
	record -o trace -- ./program leak=15 alloc=1000
	reports trace before
	"$tool" resolve -o copy trace
	gone reports copy copied
	diff -r before copied || fail "another report of the copy"
	"$tool" resolve trace
	gone reports trace after
	diff -r before after || fail "another report"
	! "$tool" resolve trace 2>said || fail "resolved again"
	grep -q 'has its names already' said || fail "$(cat said)"
}

# Names are not added to a file of which a part would be lost.
test_refused() {
	local bytes status=0
	record -o trace -- "$target" alloc=1000
	cp trace whole
	bytes=$(stat -c %s trace)
	head -c $((bytes - 1)) whole >trace
	cp trace cut
	! "$tool" resolve trace 2>said || fail "a cut file"
	equal lines "$(wc -l <said)" 1
	cmp trace cut || fail "changed though it was refused"
	"$tool" resolve /etc/passwd 2>said || status=$?
	equal status "$status" 1
	status=0
	"$tool" resolve 2>said || status=$?
	equal status "$status" 2
}

# A file whose names were cut off is read without them.
test_cut() {
	local at bytes
	cp "$target" program
	record --resolve -o trace -- ./program leak=15 alloc=300000
	bytes=$(stat -c %s trace)
	for at in 1 10 100; do
		head -c $((bytes - at)) trace >cut
		"$tool" report cut >said 2>&1 || fail "cut: status $?"
		grep -q 'alloc_blocks' said || fail "$(cat said)"
		grep -q 'cut off' said || fail "nothing is said"
	done
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
