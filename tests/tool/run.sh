#!/bin/bash
# SPDX-License-Identifier: MIT
#
# run.sh TOOL TARGET NAME runs the function test_NAME in a new directory. TARGET's
# allocations are known; what a bare start costs (the loader and libc may allocate)
# is measured, and subtracted.
set -euo pipefail
tool=$1 target=$2 crash=$(dirname "$2")/crash
manual=$(realpath "$(dirname "${BASH_SOURCE[0]}")")/../../man/incstack-heap.1

# shellcheck source=tests/tool/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# record ARGUMENTS...: incstack heap, whatever its exit status, which is in $status; it is
# ended after 280 seconds: a busy machine may need long.
record() {
	status=0
	timeout 280 "$tool" heap "$@" >stdout 2>stderr </dev/null || status=$?
	last=$(tail -n 1 stderr)
}

# The traces of a program that takes no step.
bare() {
	record -o bare -- "$target"
	value traces
}

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

# The program's process has libunwind only if it is needed.
test_libunwind_for_crosscheck() {
	local walker
	record -o trace -- grep -q libunwind /proc/self/maps
	equal status "$status" 1
	for walker in libunwind own; do
		record -o trace "--crosscheck=$walker" -- grep -q libunwind /proc/self/maps
		equal status "$status" 0
		equal mismatches "$(value mismatches)" 0
		equal crosschecked "$(value crosschecked)" "$(value traces)"
	done
}

# What a thread has counted is in the file when its traces are, however it ends.
test_counters_are_exact() {
	local base mode walker
	base=$(bare)
	for mode in patch validate full own/patch own/validate own/full; do
		walker=libunwind
		[[ $mode != */* ]] || walker=${mode%/*}
		mode=${mode#*/}
		record -o trace "--crosscheck=$walker" --mode "$mode" -- "$target" threads=8:5000 \
			alloc=1000
		equal status "$status" 0
		# Each pthread_create allocates once.
		equal traces "$(value traces)" $((base + 8 * 5001 + 1000))
		equal crosschecked "$(value crosschecked)" "$(value traces)"
		equal mismatches "$(value mismatches)" 0
		equal lost "$(value lost)" 0
		equal truncated "$(value truncated)" 0
		equal stale "$(value stale)" 0
		equal mode "$(value mode)" "$mode"
	done
	# Of each thread the first trace, and every 997th from there.
	[[ $(<stderr) == *" full walks, $((8 * 6 + 2)) of them by libunwind; 0 differ"* ]] ||
		fail "not as many by libunwind"
	equal returns "$(value returns)" 0
	INCSTACK_MODE=validate record -o trace -- "$target" alloc=10 # the kill switch
	equal mode "$(value mode)" validate
}

# Threads that stay are asked for their traces when the process ends.
test_threads_that_stay() {
	local base
	base=$(bare)
	record -o trace --crosscheck -- "$target" stay=5:100
	equal status "$status" 0
	equal traces "$(value traces)" $((base + 5 * 101))
	equal crosschecked "$(value crosschecked)" "$(value traces)"
	equal lost "$(value lost)" 0
	record -o trace -- "$target" stay=5:100 _exit
	equal traces "$(value traces)" $((base + 5 * 101))
	equal lost "$(value lost)" 0
}

# A thread that ended keeps no memory: crosschecked, each has some 20 MiB of addresses.
test_threads_that_ended() {
	local many=()
	for _ in {1..50}; do many+=(threads=8:10); done
	(ulimit -v $((3 << 20)) && exec "$tool" heap -o trace --crosscheck -- "$target" "${many[@]}") \
		>stdout 2>stderr </dev/null || fail "status $?"
	last=$(tail -n 1 stderr)
	[[ $(value traces) -ge $((50 * 8 * 10)) ]] || fail "traces $(value traces)"
	equal lost "$(value lost)" 0
	equal crosschecked "$(value crosschecked)" "$(value traces)"
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

# calls and bytes at exit of a function in the report, whose bytes are whole tenths of a unit.
row() { awk -v f="$1" '$7 == f { print $3, $5 * ($6 == "KiB" ? 1024 : $6 == "MiB" ? 1048576 : 1) }' stderr; }

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

# Threads that do not hear the request keep what they have not written, which is counted.
test_deaf_threads() {
	local base
	base=$(bare)
	record -o trace -- "$target" stay=2:100 deaf=3:100
	equal status "$status" 0
	# They could not be stopped: what they had not written was in the spool.
	equal traces "$(value traces)" $((base + 2 * 101 + 3 * 101))
	equal lost "$(value lost)" 0
	equal truncated "$(value truncated)" 0
	! grep -q 'did not end normally' stderr || fail "it did"
	[[ ! -e trace.live ]] || fail "the spool is still there"
}

# C++ names are readable, and operator new is not what allocates.
test_cxx_names() {
	record -o trace -- "$(dirname "$target")/../crosscheck/threads" 1
	equal status "$status" 0
	grep -q ';(anonymous namespace)::grow(unsigned int, unsigned int);' trace.folded ||
		fail "mangled"
	! grep -Eq '^ +[0-9.]+ [KM]iB +[0-9]+ +[0-9]+ +[0-9.]+ .*B +operator new' stderr ||
		fail "operator new is in the table"
}

# Threads that ended have written all; the killer's own 50 traces are found in the spool.
test_killed() {
	local base end
	base=$(bare)
	for end in kill:137 abort:134; do
		record -o trace --crosscheck -- "$target" threads=4:20000 alloc=50 "${end%:*}"
		equal status "$status" "${end#*:}"
		equal traces "$(value traces)" $((base + 4 * 20001 + 50))
		equal lost "$(value lost)" 0
		equal truncated "$(value truncated)" 0
		equal crosschecked "$(value crosschecked)" "$(value traces)"
		equal mismatches "$(value mismatches)" 0
		grep -q 'did not end normally' stderr || fail "no warning"
	done
	record -o trace -- "$target" alloc=50 kill # before anything was written
	equal traces "$(value traces)" $((base + 50))
	[[ ! -e trace.live ]] || fail "the spool is still there"
	! grep -q 'no allocation was recorded' stderr || fail "they were"
}

# How the program ended, and what it allocated last; also in a report that is made later.
test_end_is_told() {
	local end shown
	for end in kill:SIGKILL abort:SIGABRT; do
		record -o trace -- "$target" alloc=50000 leak=100000 "${end%:*}"
		grep -q "^The program was killed by ${end#*:} (" stderr || fail "${end%:*} is not reported"
		"$tool" report trace >shown
		for shown in shown stderr; do
			grep -q "killed by ${end#*:}" "$shown" || fail "$shown: not reported again"
			grep -A 2 '^The newest recorded allocation .* on thread 1:$' "$shown" |
				grep -q '^ *leak_blocks$' || fail "$shown: another allocation"
		done
	done
	record -o trace -- "$target" alloc=50 status
	equal status "$status" 3
	grep -q '^The program exited with status 3.$' stderr || fail "the status is not told"
	! grep -q 'newest recorded' stderr || fail "it ended normally"
	record -o trace -- "$target" alloc=50
	! grep -Eq '^The program (exited|was)|newest recorded' stderr || fail "there is nothing to tell"
	# The end is that of the program that the process became.
	record -o trace -- "$target" alloc=50 exec="$target" leak=100000 kill
	"$tool" report "$(ls trace.*.0)" >shown
	! grep -Eq 'killed|newest recorded' shown || fail "that one did not end"
	grep -q 'killed by SIGKILL' stderr || fail "this one did"
}

# Counters that another process has overwritten are left out, and that is said.
test_damaged_counters() {
	record -o trace -- "$target" alloc=100
	head -c 40 trace | dd of=trace bs=1 seek=$((4096 + 5 * 64)) conv=notrunc status=none
	"$tool" report trace >shown
	grep -q '^warning: the counters of 1 threads are inconsistent' shown || fail "not said"
	! grep -Eq '[0-9]{12}' shown || fail "a number that cannot be"
}

# Lines of folded stacks and the tower of the flame graph stay bounded, and no byte is lost.
test_deep_recursion() {
	record -o trace -- "$target" deep=20000
	equal status "$status" 0
	grep -q '^note: 19[0-9]* contexts have more than 512 frames;' stderr || fail "not said"
	[[ $(stat -c %s trace.folded) -lt 4000000 && $(stat -c %s trace.html) -lt 1000000 ]] ||
		fail "$(ls -l trace.*)"
	equal "bytes of recurse" "$(folded recurse)" 160000
	grep -q ';recurse;\[frames left out\];recurse;.*;recurse [0-9]*$' trace.folded ||
		fail "$(tail -n 1 trace.folded)"
	equal "frames of the longest line" \
		"$(awk -F ';' 'NF > most { most = NF } END { print most }' trace.folded)" 513
	record -o trace -- "$target" deep=400
	! grep -q 'contexts have more than' stderr || fail "there are none"
	equal "bytes of recurse" "$(folded recurse)" 3200
}

# The frame of the caller is found by the frame pointer, also for an event that finds no room.
test_frame_pointer() {
	local base
	base=$(bare)
	record -o trace -- "$target" variable=1000000
	equal status "$status" 0
	equal traces "$(value traces)" $((base + 2000000))
	equal truncated "$(value truncated)" 0
	equal "contexts of realloc" "$(grep -c ';resize_one ' trace.folded)" 1
}

# A batch has all frames of the stack. So there are few batches where the stack is deep, and
# a kill loses none of their events.
test_deep_stack() {
	local base bytes
	base=$(bare)
	record -o trace -- "$target" below=60000:100000
	bytes=$(folded alloc_blocks)
	equal traces "$(value traces)" $((base + 100000))
	[[ $(stat -c %s trace) -lt 5000000 ]] || fail "$(ls -l trace)"
	record -o trace -- "$target" below=60000:100000 alloc=10 below=60000:50000 kill
	equal traces "$(value traces)" $((base + 150010))
	equal lost "$(value lost)" 0
	equal "bytes of the second run" "$(folded alloc_blocks)" $((bytes * 150010 / 100000))
	record -o trace -- "$target" below=80000:40000 kill
	equal traces "$(value traces)" $((base + 40000))
}

# The stack is as deep before as it will be later. What was recorded before is not lost, and
# what could not be is counted.
test_no_memory() {
	local base dropped
	base=$(bare)
	record -o trace -- "$target" alloc=5000 below=30000:1 tight deep=20000
	equal status "$status" 0
	dropped=$(sed -n 's/^warning: \([0-9]*\) allocations .* were dropped: .*/\1/p' stderr)
	equal "all traces" $(($(value traces) + $(value lost) + dropped)) $((base + 25002))
	[[ $dropped -gt 0 ]] || fail "there was memory enough"
	grep -q '^note: the recorder got no memory' stderr || fail "not said"
	[[ $(value traces) -ge $((base + 5000)) ]] || fail "$(value traces) traces"
}

# Nobody reads the pipe, so the report would wait for ever.
test_report_is_ended() {
	local signal
	for signal in TERM:143 HUP:129 INT:130; do
		rm -f trace*
		mkfifo trace.folded
		# The shell starts what is in the background with SIGINT ignored.
		(trap - INT && exec "$tool" heap -o trace -- "$target" alloc=50) \
			>stdout 2>stderr </dev/null &
		until [[ -e trace.html ]]; do sleep 0.1; done
		sleep 0.2
		kill "-${signal%:*}" $!
		status=0
		wait $! || status=$?
		equal "status after ${signal%:*}" "$status" "${signal#*:}"
	done
}

# A file has its name when it is whole; until then it is that of before.
test_whole_files() {
	record -o trace -- "$target" alloc=50
	cp trace.html before
	(ulimit -f 2 && "$tool" report trace) >shown 2>&1 && fail "it fitted" # SIGXFSZ
	cmp trace.html before || fail "another trace.html"
	(trap '' XFSZ && ulimit -f 2 && "$tool" report trace) >shown 2>&1 && fail "it fitted"
	cmp trace.html before || fail "another trace.html"
	equal "temporary files" "$(find . -name '*.part')" ''
	# A symbolic link stays one, and permissions stay.
	mv trace.html elsewhere && ln -s elsewhere trace.html && chmod 600 elsewhere
	: >elsewhere
	"$tool" report trace >shown || fail "status $?"
	[[ -L trace.html && -s elsewhere ]] || fail "the link was replaced"
	equal permissions "$(stat -c %a elsewhere)" 600
}

# Calls of the whole report.
calls() { sed -n 's/^allocated .* in \([0-9]*\) calls$/\1/p' stderr; }

# Every caller is known. But if the program took 100 ms, because it had no processor, a batch was written in the
# middle of its events. The next batch begins with callers that are not walked yet, which the report says.
callers_are_known() {
	local open
	open=$(value truncated)
	(($(od -An -tu8 -j 8 -N 8 counts) >= 90000)) || equal truncated "$open" 0
	((open <= 2)) || fail "truncated is $open"
	((open == 0)) || grep -qE 'callers had not been walked|callers of [0-9]* frames are unknown' stderr ||
		fail "does not say that callers are unknown"
	((open > 0)) || equal "frames of main" "$(grep -c '^_start;.*main;' trace.folded)" 1
	! grep -v ';main;' trace.folded || fail "a trace without main"
}

# Nothing of a program that crashes is missing.
test_crashes() {
	local end
	for end in segv:139 abort:134 kill:137 exit_group:0; do
		record -o trace -- "$crash" count=counts blocks=500 "${end%:*}"
		equal status "$status" "${end#*:}"
		equal lost "$(value lost)" 0
		[[ $(calls) -ge 500 ]] || fail "$(calls) calls"
		callers_are_known
		record -o trace -- "$crash" crash="${end%:*}"
		equal "lost in a thread" "$(value lost)" 0
		[[ $(calls) -ge 300 ]] || fail "$(calls) calls of a thread"
		[[ ! -e trace.live ]] || fail "the spool is still there"
	done
}

# The newest files of children that crashed have all, too.
test_crashes_of_children() {
	local end
	for end in segv abort kill exit_group; do
		record -o trace --follow-children -- "$crash" fork=500:$end
		equal status "$status" 0
		equal lost "$(value lost)" 0
		"$tool" report trace.*.0 >shown
		grep -q '^allocated 379.4 KiB in 500 calls$' shown || fail "$(cat shown)"
		[[ -z $(find . -name '*.live') ]] || fail "a spool is still there"
		rm trace.*
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

# Killed at any moment: all that had been allocated before is there.
test_killed_at_any_moment() {
	local i counted options
	for i in {1..20}; do
		options=()
		[[ $((i % 5)) != 0 ]] || options=(--crosscheck)
		record -o trace "${options[@]}" -- "$crash" count=counts threads=$((i % 4 + 1)):$((RANDOM % 30000)) kill
		equal status "$status" 137
		counted=$(od -An -v -tu8 counts | awk '{ for (i = 1; i <= NF; i++) sum += $i } END { print sum }')
		[[ $(calls) -ge $counted ]] || fail "$(calls) calls of $counted"
		[[ $(value lost) -le 5 ]] || fail "lost $(value lost)"
		[[ ${#options[@]} == 0 ]] || equal crosschecked "$(value crosschecked)" "$(value traces)"
		equal mismatches "$(value mismatches)" 0
		! grep -q damaged stderr || fail "damaged"
		[[ ! -e trace.live ]] || fail "the spool is still there"
	done
}

# prefix THREAD SEEN COUNTED: the sizes that were recorded of a thread are those of its first
# blocks, one after the other: at least of those that were seen, at most of all and one.
prefix() {
	local bytes
	bytes=$(awk -v n="$1" '{ line = $0; if (gsub(/;descend/, "", line) == n) sum += $NF }
		END { print sum + 0 }' trace.folded)
	awk -v bytes="$bytes" -v seen="$2" -v counted="$3" 'BEGIN {
		for (n = 0; sum < bytes; n++) sum += 1 + n % 4096
		exit sum != bytes || n < seen || n > counted + 1
	}' || fail "thread $1: $bytes bytes, $2 blocks seen, $3 counted"
}

# The process ends in each way while threads allocate without pause: what each of them had
# allocated by then is there, without a gap, and nothing twice. On a machine with much other work a
# thread may not run for the second that it is waited for, which the report says.
test_ends_while_threads_allocate() {
	local end options i
	for end in exit _exit _Exit quick_exit; do
		for options in --mode=patch --crosscheck=own; do
			record -o trace "$options" -- "$crash" count=counts growing=3:20000 "$end"
			equal "status of $end" "$status" 0
			# A loss that the report explains may happen, rarely.
			! grep -q 'the recorder got no memory' stderr || fail "$end: there was memory"
			! grep -q 'a thread could not be stopped' stderr || continue
			equal lost "$(value lost)" 0
			equal mismatches "$(value mismatches)" 0
			read -ra seen < <(sed -n 's/^growing //p' stdout)
			mapfile -t counted < <(od -An -v -tu8 -w64 counts | awk '{ print $1 }')
			for i in 1 2 3; do
				prefix "$i" "${seen[i - 1]}" "${counted[i]}"
			done
		done
	done
}

# What a signal handler allocates inside the recorder is recorded or counted, each of them.
test_handlers_in_the_recorder() {
	local handled calls missing dropped
	record -o trace -- "$crash" handlers=20
	equal status "$status" 0
	handled=$(sed -n 's/^handlers //p' stdout)
	calls=$(sed -n 's/^allocated .* in \([0-9]*\) calls$/\1/p' stderr)
	missing=$(sed -n 's/^warning: \([0-9]*\) allocations .* in signal handlers .*$/\1/p' stderr)
	dropped=$(sed -n 's/^warning: \([0-9]*\) allocations .* were dropped: .*$/\1/p' stderr)
	[[ $missing -ge 1000 ]] || fail "no handler interrupted the recorder"
	# printf has one of its own.
	equal "recorded and missing" $((calls + missing + ${dropped:-0})) $((handled + 20 + 2))
}

# A child goes on from any instruction of the recorder that a forking handler interrupts.
test_forks_in_the_recorder() {
	local forks bad check
	# With --crosscheck all events take the slow path. This takes long without optimization.
	for check in "" own; do
		record -o trace ${check:+--crosscheck="$check"} -- "$crash" forks=20:1
		equal status "$status" 0
		read -r forks bad < <(sed -n 's/^forks //p' stdout)
		[[ $forks -ge 300 ]] || fail "$forks forks"
		equal "children that ended badly, crosscheck ${check:-no}" "$bad" 0
	done
}

# Those are recorded from the end of the event on that was interrupted.
test_children_of_forks_in_the_recorder() {
	local forks bad alone
	record -o trace -- "$crash" forks=20:31
	alone=$(value traces)
	record -o trace --follow-children -- "$crash" forks=20:31
	equal status "$status" 0
	read -r forks bad < <(sed -n 's/^forks //p' stdout)
	equal "children that ended badly" "$bad" 0
	[[ $forks -ge 8 ]] || fail "$forks forks"
	equal "trace files" "$(find . -name 'trace.*.0' | wc -l)" "$forks"
	[[ $(value traces) -ge $((alone + 20 * forks)) ]] || fail "$(value traces) traces of $forks children"
	# The child's event in the handler came too early, or is one more.
	local child
	for child in $(find . -name 'trace.*.0' | head -n 12); do
		"$tool" report "$child" >shown 2>&1
		grep -qE '^warning: 1 allocations .* in signal handlers|^21 traces' shown ||
			fail "the event in the handler of $child is not counted"
	done
	equal lost "$(value lost)" 0
}

# A jump out of any instruction of the recorder loses one sample at most.
test_jumps_out_of_the_recorder() {
	local jumps allocations
	record -o trace -- "$crash" jumps=20
	equal status "$status" 0
	read -r jumps allocations < <(sed -n 's/^jumps //p' stdout)
	[[ $jumps -ge 100 ]] || fail "$jumps jumps"
	[[ $(value traces) -ge $allocations ]] || fail "$(value traces) of $allocations traces"
	[[ $(value lost) -le $jumps ]] || fail "lost $(value lost)"
}

# A signal for the tool is the program's: that ends, and the report comes.
test_ended_from_outside() {
	local signal
	mkfifo never
	for signal in TERM:143 HUP:129; do
		rm -f ready
		"$tool" heap -o trace -- bash -c ': >ready; read -r <never' \
			>stdout 2>stderr </dev/null &
		until [[ -e ready ]]; do sleep 0.1; done
		kill "-${signal%:*}" $!
		status=0
		wait $! || status=$?
		equal status "$status" "${signal#*:}"
		last=$(tail -n 1 stderr)
		[[ $last == "incstack: traces="* ]] || fail "no report"
	done
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
	"$tool" report trace >shown || fail "no report"
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

# refuse STATUS PATTERN ARGUMENTS...: the error says what is wrong.
refuse() {
	local want=$1 pattern=$2
	shift 2
	record "$@"
	equal "status of $*" "$status" "$want"
	grep -q "$pattern" stderr || fail "$*: not said: $pattern"
	[[ ! -e trace ]] || fail "$*: a trace file is left"
}

test_errors() {
	refuse 127 'no such program' -o trace -- nosuchprogram
	refuse 126 'chmod' -o trace -- /etc/passwd
	printf '#!/nonexistent\n' >script && chmod +x script
	refuse 127 'interpreter' -o trace -- ./script
	cp "$target" setuid && chmod u+s setuid
	refuse 126 'set-uid' -o trace -- ./setuid
	printf 'int main(void) { return 0; }' | cc -static -x c - -o static
	refuse 126 'static' -o trace -- ./static
	printf 'int main(void) { return 0; }' | cc -fsanitize=address -x c - -o sanitized
	refuse 126 'AddressSanitizer' -o trace -- ./sanitized
	printf 'int main(void) { return 0; }' | cc -fsanitize=thread -x c - -o sanitized
	refuse 126 'ThreadSanitizer' -o trace -- ./sanitized
	refuse 126 'cannot write' -o nowhere/trace -- true
	refuse 126 'not a regular file' -o /dev/null -- true
	[[ -c /dev/null ]] || fail "/dev/null is gone"
	refuse 2 'no program given' -o trace
	refuse 2 'no program given' -o trace --
	refuse 2 "unknown or ambiguous option '--nosuchoption'" --nosuchoption
	refuse 2 "unknown or ambiguous option '--a.x1b.31mX'" $'--a\x1b[31mX'
	refuse 2 "unknown option '-.x1b'" $'-\x1b'
	refuse 2 "option '--output' needs a value" --output
	refuse 2 "option '--threads=1' takes no value" --threads=1
	refuse 2 'interval' -o trace --interval 10x -- true
	refuse 2 'interval' -o trace --interval 0 -- true
	refuse 2 'interval' -o trace --interval -1 -- true
	refuse 2 'mode' -o trace --mode fast -- true
	refuse 2 'own' -o trace --crosscheck=all -- true
	"$tool" heap --help | grep -q 'incstack: traces=N' || fail "help"
}

# help and -V are the words that other tools have for --help and --version.
test_help() {
	equal "help" "$("$tool" help)" "$("$tool" --help)"
	equal "-V" "$("$tool" -V)" "$("$tool" --version)"
	local command
	for command in heap report convert compare merge; do
		equal "help $command" "$("$tool" help $command)" "$("$tool" $command --help)"
		"$tool" help | grep -q "^  $command " || fail "$command"
	done
	! "$tool" help nosuchcommand 2>stderr || fail "a command that there is not"
	grep -q "unknown command 'nosuchcommand'" stderr || fail "$(cat stderr)"
}

# What bash, zsh and fish offer is what the help lists.
test_completion() {
	local folder shell
	folder=$(dirname "$0")/../../completions
	# shellcheck source=/dev/null
	source "$folder/incstack.bash"
	complete_words() {
		COMP_WORDS=("$tool" "$@") COMP_CWORD=$#
		_incstack
		echo "${COMPREPLY[*]}"
	}
	equal "commands" "$(complete_words co)" "compare convert"
	equal "options" "$(complete_words heap --cr)" "--crosscheck"
	touch file.folded
	equal "files" "$(complete_words report file)" "file.folded"
	for shell in zsh fish; do
		! command -v $shell >/dev/null || $shell -n "$folder/incstack.$shell" || fail $shell
	done
	if command -v fish >/dev/null; then
		equal "in fish" "$(HOME=$PWD PATH=$(dirname "$tool"):$PATH fish --no-config -c \
			"source $folder/incstack.fish
			complete -C 'incstack co'; complete -C 'incstack heap --cr'" | xargs)" \
			"compare convert --crosscheck"
	fi
}

test_text_report() {
	record -o trace -- "$target" leak=50 alloc=300 mixed=10 leak=10 big=70000
	grep -q '^allocated 90.8 KiB in 381 calls$' stderr || fail "no total"
	grep -q '^at the peak 74.2 KiB, still live at exit 5.9 KiB$' stderr ||
		fail "no totals"
	grep -q '^temporary: 321 calls (84.3%)' stderr || fail "no temporary allocations"
	grep -Eq '^ +5.9 KiB +60 +0 +5.9 KiB +leak_blocks \(target\)$' stderr || fail "no leak"
	grep -Eq '^ +14.1 KiB +300 +300 +0 B +alloc_blocks \(target\)$' stderr || fail "no site"
	[[ $(wc -L <stderr) -le 200 ]] || fail "too wide"
	grep -Eq ';main;run_step;leak_blocks 6000$' trace.folded || fail "$(cat trace.folded)"
	# As wide as the terminal: script(1) makes one of 70 columns.
	if command -v script >/dev/null; then
		script -qec "stty cols 70; '$tool' report trace" /dev/null >wide </dev/null
		# On a busy machine a line of progress stands before what replaces it.
		sed -e 's/.*\x1b\[K//' -e '/^flame/d' wide | tr -d '\r' >lines
		[[ $(wc -L <lines) -le 70 ]] || fail "$(cat wide)"
	fi
}

# Without symbols all calls of one function still have one name: where it starts.
test_stripped() {
	strip -o stripped "$target"
	record -o trace -- ./stripped mixed=10 leak=1
	equal "functions of the program" \
		"$(grep -o 'stripped+0x[0-9a-f]*' trace.folded | sort -u | wc -l)" 7
	local start
	start=$(nm "$target" | awk '$3 == "leak_blocks" { print $1 }')
	grep -q "stripped+0x$(printf %x "0x$start") 100" trace.folded || fail "$(cat trace.folded)"
}

# near WHAT VALUE TRUTH PERCENT
near() {
	awk -v a="$2" -v b="$3" -v p="$4" 'BEGIN { exit !(a > b * (1 - p / 100) && a < b * (1 + p / 100)) }' ||
		fail "$1 is $2, not within $4 % of $3"
}

# folded FUNCTION: bytes of the stacks that end in it, estimated.
folded() { awk -v f="$1" '$0 ~ "[; ]" f " [0-9]+$" { sum += $NF } END { print sum + 0 }' trace.folded; }

# The program alternates between two sizes: samples in step with it would see one only.
# 40000 KiB in samples of 1 KiB, so the standard deviations are about 1 %.
test_interval() {
	local interval
	export INCSTACK_SEED=1
	for interval in 256 1k 8000; do
		record -o trace --interval "$interval" -- "$target" mixed=160000
		equal status "$status" 0
		equal lost "$(value lost)" 0
		near "bytes of alloc_small" "$(folded alloc_small)" 10240000 8
		near "bytes of alloc_large" "$(folded alloc_large)" 30720000 8
		near "allocations" "$(sed -n 's/^Allocations: \([0-9]*\).*/\1/p' stderr)" 320000 8
	done
	# As many samples as intervals.
	near "traces" "$(value traces)" $((40960000 / 8000)) 6
	# A block far larger than the interval counts as it is.
	record -o trace --interval 1k -- "$target" big=50000000
	near "bytes of main" "$(folded main)" 50000000 1
}

# Runs of one program choose different samples, so their errors average out, unless a seed is given.
test_seeds() {
	for _ in 1 2 3 4 5 6; do
		record -o trace --interval 8000 -- "$target" mixed=1600
		folded alloc_large >>different
		INCSTACK_SEED=7 record -o trace --interval 8000 -- "$target" mixed=1600
		folded alloc_large >>equal
	done
	equal "different estimates with a seed" "$(sort -u equal | wc -l)" 1
	(($(sort -u different | wc -l) > 1)) || fail "all runs have chosen the same samples: $(cat different)"
}

# Every option of the help is in the manual.
test_manual() {
	local option
	for option in $("$tool" heap --help | grep -o -e '--[a-z][a-z-]*' | sort -u); do
		[[ $option == --help ]] || grep -q "Fl -${option#--}" "$manual" || fail "$option"
	done
	if command -v mandoc >/dev/null; then
		mandoc -Tlint -Wwarning "$manual" || fail "the manual has faults"
	fi
}

# Options behind the program are its own, its exit status is ours, names may be odd.
test_program() {
	printf '#!/bin/sh\necho "$@"\nexit 7\n' >'my program' && chmod +x 'my program'
	record -o 'my trace' './my program' -o foo --mode bar
	equal status "$status" 7
	equal output "$(cat stdout)" '-o foo --mode bar'
	[[ -s 'my trace.html' && -e 'my trace.folded' ]] || fail "no files"
	record -- true
	equal status "$status" 0
	ls incstack.*.heap.html >/dev/null
	mkdir elsewhere
	record -o trace -- sh -c "cd elsewhere; exec '$target' alloc=5"
	[[ -s trace.html ]] || fail "the trace file is relative to where the tool was started"
}

test_full_disk() {
	local base
	base=$(bare)
	LD_PRELOAD=$(dirname "$target")/../preload/full_disk.so record -o trace -- \
		"$target" alloc=100000
	equal status "$status" 0
	grep -q '^note: the disk is full' stderr || fail "not said"
	equal "lines of the program" "$(grep -c '^incstack: ' stderr)" 2
	equal "traces and lost" $(($(value traces) + $(value lost))) $((base + 100000))
	[[ $(value traces) -gt 1000 && $(value lost) -gt 1000 ]] || fail "$last"
}

# At the limit the kernel would end the program by a signal.
test_file_limit() {
	local base
	(ulimit -f 4 && refuse 126 'ulimit -f' -o small -- "$target" alloc=10)
	[[ ! -e small ]] || fail "a trace file is left"
	base=$(bare)
	(
		ulimit -f 700 # of 1024 bytes
		record -o trace -- "$target" alloc=100000
		equal status "$status" 0
		grep -q '^note: .*ulimit -f' stderr || fail "not said"
		equal output "$(cat stdout)" ""
		equal "traces and lost" $(($(value traces) + $(value lost))) $((base + 100000))
		[[ $(value traces) -gt 1000 && $(value lost) -gt 1000 ]] || fail "$last"
	)
	# If there is no room for the file of the next program, the program still runs.
	# shellcheck disable=SC2016
	record -o trace -- bash -c 'ulimit -f 4; exec "$0" alloc=10 >&2' "$target"
	equal status "$status" 0
	grep -q '^note: .*could not be recorded' stderr || fail "not said"
	# shellcheck disable=SC2016
	record -o trace -- bash -c 'ulimit -f 4; for i in {1..9000}; do x=$i$i; done; echo ok'
	equal status "$status" 0
	equal output "$(cat stdout)" ok
}

# The program runs as without the recorder, and only the tool says why there is no report.
test_no_recorder() {
	mkdir alone
	cp "$tool" "$(dirname "$tool")/libincstack_preload.so" alone
	status=0
	alone/incstack heap -o trace -- sh -c 'echo out; echo err >&2; exit 3' \
		>stdout 2>stderr </dev/null || status=$?
	equal status "$status" 3
	equal output "$(cat stdout)" out
	equal "lines that are not the tool's" "$(grep -v '^incstack: ' stderr)" err
	equal "lines of the tool" "$(grep -c '^incstack: ' stderr)" 2
	grep -q 'nothing was recorded into .*: the recorder could not be loaded' stderr || fail "not said"
	[[ ! -e trace ]] || fail "an empty file is left"
}

# Where the hardware guards return addresses, none is changed, and the report says so.
test_shadow_stack() {
	# shellcheck disable=SC2016
	record -o trace -- sh -c 'LD_PRELOAD="$LD_PRELOAD:$0" exec "$@"' \
		"$(dirname "$target")/../preload/shadow_stack.so" "$target" alloc=1000
	equal status "$status" 0
	equal mode "$(value mode)" validate
	grep -q '^note: .*shadow stack' stderr || fail "not said"
}

# In a sandbox that the recorder's system calls would end, recording stops.
test_sandbox() {
	local kind program
	program=$(dirname "$target")/../preload/stacks_sandbox
	for kind in kill trap errno sync calls strict strict_call; do
		record -o trace -- "$program" $kind
		equal "status in $kind" "$status" 0
		grep -q '^note: .*seccomp' stderr || fail "$kind: not said"
		[[ $(value traces) -gt 2000 ]] || fail "$kind: $last"
	done
	record -o trace -- "$program" allow
	equal status "$status" 0
	! grep -q '^note:' stderr || fail "a note"
	equal lost "$(value lost)" 0
	[[ $(value traces) -gt 4000 ]] || fail "$last"
}

# Two runs never write one file.
test_same_file() {
	local first
	mkfifo never
	"$tool" heap -o trace -- bash -c ': >ready; read -r <never' >stdout 2>first </dev/null &
	first=$!
	until [[ -e ready ]]; do sleep 0.1; done
	record -o trace -- "$target" alloc=10
	equal status "$status" 126
	grep -q "trace is being written by process [0-9]*; choose another" stderr || fail "not said"
	record -o trace2 -- "$target" alloc=10
	equal status "$status" 0
	echo >never
	wait $first || fail "the first: $(cat first)"
	last=$(tail -n 1 first)
	[[ $(value traces) -gt 100 ]] || fail "$last"
	equal lost "$(value lost)" 0
	record -o trace -- "$target" alloc=10
	equal status "$status" 0
	# One that outlives its tool.
	rm -f ready
	# shellcheck disable=SC2016
	record -o trace -- bash -c '(exec >/dev/null 2>&1; : >ready; read -r <never) &
		until [[ -e ready ]]; do sleep 0.1; done'
	equal status "$status" 0
	echo >never
}

# An allocator whose operators new call malloc for some blocks only: each counts once.
test_operator_new() {
	local first program
	program=$(dirname "$target")/../preload/stacks_new
	export LD_PRELOAD=$program.so
	record -o trace -- "$program" 1000
	equal status "$status" 0
	first=$(value traces)
	record -o trace --interval 1 -- "$program" 3000
	equal "traces of 2000 rounds" $(($(value traces) - first)) 4000
	grep -q "^allocated .* in $(value traces) calls$" stderr || fail "calls"
	grep -q '^at the peak .*still live at exit 0 B' stderr || fail "some are live"
	record -o trace --interval 100 -- "$program" 20000
	near calls "$(sed -n 's/^allocated .* in \([0-9]*\) calls (estimated)$/\1/p' stderr)" 40300 10
}

# A program's own allocator is not seen, which the report says.
test_own_allocator() {
	printf '%s\n' '#include <cstdlib>' \
		'static char pool[1 << 16], *at = pool;' \
		'void *operator new(std::size_t n) { return at += n; }' \
		'void operator delete(void *) noexcept {}' \
		'int main() { delete new int[2]; }' >own.cpp
	c++ -w -o own own.cpp
	record -o trace -- ./own
	equal status "$status" 0
	grep -q '^note: .*defines operator new' stderr || fail "no note"
	printf '%s\n' '#include <stddef.h>' 'static char pool[1 << 20], *at = pool;' \
		'void *malloc(size_t n) { at += n + 15 & -16; return at - (n + 15 & -16); }' \
		'void free(void *p) { (void)p; }' \
		'void *calloc(size_t n, size_t m) { return malloc(n * m); }' \
		'void *realloc(void *p, size_t n) { return p ? 0 : malloc(n); }' \
		'int main(void) { free(malloc(1)); return 0; }' >own.c
	cc -w -o own own.c
	record -o trace -- ./own
	equal status "$status" 0
	grep -q '^note: .*defines malloc' stderr || fail "no note"
	printf '%s\n' '#include <stdlib.h>' \
		'void *mallocx(size_t n, int flags) { return malloc(n + (flags & 0)); }' >special.c
	cc -w -shared -fPIC -o libspecial.so special.c
	for own in 'mallocx(1, 0)' 'malloc(1)'; do
		printf '%s\n' '#include <stdlib.h>' 'void *mallocx(size_t, int);' \
			"int main(void) { free($own); return 0; }" >own.c
		cc -w -fno-builtin -o own own.c -Wl,--no-as-needed -L. -lspecial -Wl,-rpath,"$PWD"
		record -o trace -- ./own
		equal status "$status" 0
		equal notes "$(grep -c '^note: functions that only some' stderr)" \
			"$(grep -c 'free(mallocx' own.c)"
	done
	record -o trace -- "$target" alloc=1
	! grep -q '^note:' stderr || fail "a note"
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
