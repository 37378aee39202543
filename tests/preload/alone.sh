#!/bin/sh
# SPDX-License-Identifier: MIT
# alone.sh STUB DIRECTORY TARGET: tests the preloaded library without a recorder, because nothing
# tells what to record. Programs that use all interposed functions must run as they do without it.
set -eu
stub=$1 directory=$2 target=$3

run() {
	name=$1
	shift
	LD_PRELOAD="$stub $*" "$directory/$name" "$directory" >/dev/null 2>&1 ||
		{ echo "$name: exit status $?" >&2 && exit 1; }
}

unset INCSTACK_HEAP
for configuration in none empty; do
	test $configuration = none || export INCSTACK_HEAP=
	for name in stacks_allocators stacks_no_runtime stacks_contexts stacks_descriptors \
		stacks_sandbox stacks_thread_exit stacks_unload stacks_backtrace stacks_throw \
		stacks_signal stacks_plugin_throws stacks_getattr; do
		run $name
	done
	run stacks_new "$directory/stacks_new.so"
done
# The end of a process and a new image, by each function.
for by in execv execve execvp execvpe execl execlp execle fexecve execveat; do
	status=0
	LD_PRELOAD=$stub "$target" by=$by exec="$target" status || status=$?
	test $status = 3 || { echo "$by: exit status $status" >&2 && exit 1; }
done
LD_PRELOAD=$stub "$target" _exit
LD_PRELOAD=$stub "$target" _Exit
