#!/bin/bash
# SPDX-License-Identifier: MIT
#
# run.sh TOOL TARGET NAME runs the function test_NAME in a new directory. TARGET's
# allocations are known; what a bare start costs (the loader and libc may allocate)
# is measured, and subtracted.
set -euo pipefail
tool=$1 target=$2

fail() {
	echo "$*" >&2
	[[ ! -f stderr ]] || cat stderr >&2
	exit 1
}

equal() { [[ $2 == "$3" ]] || fail "$1 is $2, not $3"; }

# record ARGUMENTS...: incstack heap, whatever its exit status, which is in $status.
record() {
	status=0
	timeout 60 "$tool" heap "$@" >stdout 2>stderr </dev/null || status=$?
	last=$(tail -n 1 stderr)
}

# One number of the last line.
value() { sed -n "s/^incstack: .*\<$1=\([^ ]*\).*\$/\1/p" <<<"$last"; }

# The traces of a program that takes no step.
bare() {
	record -o bare -- "$target"
	value traces
}

# Also that a shell, which forks out of forks, comes to its end.
test_forks_of_forks() {
	local base
	base=$(bare)
	record -o trace -- "$target" alloc=10 nest alloc=10
	equal status "$status" 0
	equal traces "$(value traces)" $((base + 20))
	record -o trace --follow-children -- "$target" alloc=10 nest alloc=10
	equal status "$status" 0
	# shellcheck disable=SC2016
	record -o trace --follow-children -- sh -c 'x=$(echo $(echo a | cat)); test "$x" = a'
	equal status "$status" 0
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
