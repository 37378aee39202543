# shellcheck shell=bash disable=SC2154,SC2034 # variables of the script that sources this one
# SPDX-License-Identifier: MIT
#
# What the tests of `incstack heap` share: heap_*.sh and command_line.sh source it. The allocations of $target are
# known; what a bare start costs (the loader and libc may allocate) is measured, and subtracted.

# shellcheck source=tests/tool/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# record ARGUMENTS...: incstack heap, whatever its exit status, which is in $status; it is
# ended after 280 seconds: a busy machine may need long.
record() {
	status=0
	timeout 280 "$tool" heap --folded "$@" >stdout 2>stderr </dev/null || status=$?
	last=$(tail -n 1 stderr)
}

# The traces of a program that takes no step.
bare() {
	record -o bare -- "$target"
	value traces
}

# Calls of the whole report.
calls() { sed -n 's/^allocated .* in \([0-9]*\) calls$/\1/p' stderr; }

# near WHAT VALUE TRUTH PERCENT
near() {
	awk -v a="$2" -v b="$3" -v p="$4" 'BEGIN { exit !(a > b * (1 - p / 100) && a < b * (1 + p / 100)) }' ||
		fail "$1 is $2, not within $4 % of $3"
}

# folded FUNCTION: bytes of the stacks that end in it, estimated.
folded() { awk -v f="$1" '$0 ~ "[; ]" f " [0-9]+$" { sum += $NF } END { print sum + 0 }' trace.folded; }

# refuse STATUS PATTERN ARGUMENTS...: the error says what is wrong.
refuse() {
	local want=$1 pattern=$2
	shift 2
	record "$@"
	equal "status of $*" "$status" "$want"
	grep -q "$pattern" stderr || fail "$*: not said: $pattern"
	[[ ! -e trace ]] || fail "$*: a trace file is left"
}
