#!/bin/bash
# SPDX-License-Identifier: MIT
#
# heap_processes.sh TOOL TARGET NAME runs the function test_NAME in a new directory: fork, exec and code that
# comes and goes.
set -euo pipefail
tool=$1 target=$2 crash=$(dirname "$2")/crash

# shellcheck source=tests/tool/heap_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/heap_common.sh"

# The executed program may not write where the file is.
test_exec_without_rights() {
	((EUID == 0)) || return 0
	record -o trace -- setpriv --reuid=65534 --clear-groups "$target"
	equal status "$status" 0
	grep -q 'executed, could not be recorded' stderr || fail "says nothing of the executed program"
	record -o trace -- setpriv --reuid=0 --clear-groups "$target"
	! grep -q 'executed, could not be recorded' stderr || fail "was recorded"
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
	# Children that are left alone fork in turn.
	# shellcheck disable=SC2016
	record -o trace -- bash -c 'x=$(echo $(echo $(echo $(echo a | cat)))); test "$x" = a'
	equal status "$status" 0
}

test_exec() {
	local base
	base=$(bare)
	record -o trace --crosscheck -- "$target" alloc=77 exec=nosuchprogram alloc=23
	equal traces "$(value traces)" $((base + 100))
	equal crosschecked "$(value crosschecked)" "$(value traces)"
	! grep -q 'became another program' stderr || fail "it did not"
	record -o trace -- "$target" alloc=77 exec="$target" alloc=23
	equal traces "$(value traces)" $((2 * base + 100))
	grep -q 'became another program' stderr || fail "it did"
	# The program that a wrapper starts has the plain name.
	"$tool" report --folded trace >shown || fail "no report"
	grep -q '^Heap profile of: .*alloc=23$' shown || fail "$(cat shown)"
	ls trace.*.0 trace.*.0.html >/dev/null
}

# Each function leaves a file of the image before that ended as it should, and tells the next
# image which is its own.
test_exec_by_each_function() {
	local base by
	base=$(bare)
	for by in execv execve execvp execvpe execl execlp execle fexecve execveat; do
		rm -f trace*
		record -o trace -- "$target" alloc=77 by=$by exec="$target" alloc=23
		equal "status of $by" "$status" 0
		equal "traces of $by" "$(value traces)" $((2 * base + 100))
		grep -q 'became another program' stderr || fail "$by: it did"
		! grep -q 'did not end normally' stderr || fail "$by: it did"
		equal "files of $by" "$(find . -name 'trace.*.0' | wc -l)" 1
	done
	record -o trace -- "$target" alloc=77 _Exit
	equal status "$status" 0
	equal traces "$(value traces)" $((base + 77))
	! grep -q 'did not end normally' stderr || fail "_Exit: it did"
}

test_children() {
	local base
	base=$(bare)
	record -o trace -- "$target" fork=3:500 alloc=9
	equal traces "$(value traces)" $((base + 9))
	record -o 'a trace; mode=full' --crosscheck --follow-children -- "$target" fork=3:500 alloc=9
	equal traces "$(value traces)" $((base + 9 + 3 * 500))
	equal crosschecked "$(value crosschecked)" "$(value traces)"
	equal mismatches "$(value mismatches)" 0
	equal lost "$(value lost)" 0
	equal mode "$(value mode)" patch
	equal "trace files" "$(find . -name 'a trace; mode=full.*.0' | wc -l)" 3
	equal "flame graphs" "$(find . -name '*.html' | wc -l)" 6 # with bare's and trace's
	local child
	for child in 'a trace; mode=full'.*.0.folded; do
		equal "blocks of $child" "$(awk '/;alloc_blocks [0-9]+$/ { print $NF }' "$child")" 24000
		! grep -qE '(^|;)0x' "$child" || fail "$child: frames without names"
	done
}

# A child that was made by the bare system call leaves its parent's file alone.
test_raw_fork() {
	local base
	record -o trace -- "$crash" blocks=10 blocks=10
	base=$(calls)
	record -o trace -- "$crash" blocks=10 rawfork=20000 blocks=10
	equal status "$status" 0
	equal calls "$(calls)" "$base"
	equal lost "$(value lost)" 0
	! grep -q in_child trace.folded || fail "the child is in it"
}

# A program may leave the directory to which the paths of its libraries are relative.
test_relative_paths_of_libraries() {
	local plugin
	plugin=$(dirname "$target")/plugin.so
	mkdir -p one/two
	cp "$plugin" one/first.so
	cp "$plugin" one/two/second.so
	record -o trace --crosscheck -- "$(dirname "$target")/relative" ./one/first.so one/two ../two/second.so
	equal status "$status" 0
	equal crosschecked "$(value crosschecked)" "$(value traces)"
	equal mismatches "$(value mismatches)" 0
	equal truncated "$(value truncated)" 0
	equal leaks "$(awk '/;leak_in_plugin [0-9]+$/ { sum += $NF } END { print sum }' trace.folded)" 6000
	! grep -q '^note:.*load' stderr || fail "a library seems to have gone"
}

# A child that is killed leaves the modules of its parent and its traces for the reader.
test_killed_child_of_a_plugin() {
	record -o trace --follow-children -- "$(dirname "$target")/late" "$(dirname "$target")/plugin.so"
	equal status "$status" 0
	equal lost "$(value lost)" 0
	equal leaks "$(awk '/;leak_in_plugin [0-9]+$/ { sum += $NF } END { print sum }' trace.*.0.folded)" 4000
}

# calls and own bytes at exit of a function in the report's table, whose bytes are whole tenths of a unit.
row() {
	awk -v f="$1" '$9 == f { print $2, $5 * ($5 ~ /K$/ ? 1024 : $5 ~ /M$/ ? 1048576 : 1) }' stderr
}

# Blocks that are freed by another thread, while the code that allocated them goes and comes, and
# the last words of threads that end.
test_blocks_are_handed_over() {
	local mode
	for mode in patch validate; do
		record -o trace --crosscheck=own --mode $mode -- "$(dirname "$target")/handover" \
			"$(dirname "$target")/plugin.so" 160
		equal status "$status" 0
		equal "blocks of the plugin" "$(row make_in_plugin)" "3200 $((320 * 64))"
		equal "blocks of late threads" "$(row make_late)" "160 $((16 * 64))"
		equal mismatches "$(value mismatches)" 0
		equal lost "$(value lost)" 0
	done
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
