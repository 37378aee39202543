# shellcheck shell=bash disable=SC2154 # variables of the script that sources this one
# SPDX-License-Identifier: MIT
#
# What the tests of the tool share: heap_common.sh, attach_common.sh and other scripts source it.

fail() {
	echo "$*" >&2
	[[ ! -f stderr ]] || cat stderr >&2
	exit 1
}

equal() { [[ $2 == "$3" ]] || fail "$1 is $2, not $3"; }

# unpack FILE: gives a packed trace file the form that the recorder writes.
unpack() { "$(dirname "$tool")/tests/tool/unpack" "$1" || fail "$1 cannot be unpacked"; }

# Keeps the lines of stderr that have the sums: the last one and, of a CPU profile or of -p, the one before it.
keep_sums() {
	last=$(tail -n 1 stderr)
	ticks=$(tail -n 2 stderr | head -n 1)
}

# One number of the last line, or of the line before it.
value() { sed -n "s/^incstack: .*\<$1=\([^ ]*\).*\$/\1/p" <<<"$last"; }
tick() { sed -n "s/^incstack: .*\<$1=\([^ ]*\).*\$/\1/p" <<<"$ticks"; }

# spent REGEX: nanoseconds in the contexts that match; nothing if there is no profile. Not every awk prints
# large sums as whole numbers.
spent() {
	[[ ! -f trace.folded ]] || { grep -E "$1" trace.folded || true; } |
		awk '{ sum += $NF } END { printf "%.0f\n", sum }'
}
