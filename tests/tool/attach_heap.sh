#!/bin/bash
# SPDX-License-Identifier: MIT
#
# attach_heap.sh TOOL TARGET NAME runs the function test_NAME in a new directory. TARGET allocates in
# functions with known names, as often as the tests expect; see attach_heap_target.c. Where the kernel
# allows no breakpoints, the tests are skipped (77).
set -euo pipefail
tool=$1 target=$2 command=heap

# shellcheck source=tests/tool/attach_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/attach_common.sh"

# The line of a function in the report's table: what it has allocated by itself, in how many calls, what is still live.
row() {
	awk -v f="$1" '
		function amount(text) {
			return text ~ /[KMG]$/ ? substr(text, 1, length(text) - 1) " " substr(text, length(text)) "iB" : text " B"
		}
		NF == 9 && ($9 == f || $9 == f "()") { print amount($1), $2, amount($5) }' "${2:-stderr}"
}
made() { equal "$1" "$(row "$1")" "$2"; }

# calls TAKEN [FAILED]
calls() {
	equal "calls taken" "$(tick taken)" "$1"
	equal "calls failed" "$(tick failed)" "${2:-0}"
	equal "truncated traces" "$(value truncated)" 0
}

# All that the program does in mode counts.
counted() {
	equal "the program's status" "$ended" 0
	calls $((1000 + 7 + 302 + 6 + 1))
	made by_malloc '97.7 KiB 1000 0 B'
	made by_calloc '700 B 7 700 B'
	made by_realloc '44.2 KiB 302 40 B'
	made by_aligned '672 B 6 416 B'
	made by_failure ''
	made by_old '60 B 1 60 B'
	grep -q 'still live at exit 1.2 KiB' stderr || fail "not all that lives was freed or kept"
}

test_counts() {
	during "$target" counts
	counted
	grep -q '^note: recorded from outside' stderr || fail "does not say how it was recorded"
	"$tool" report --folded trace 2>again >again
	made by_calloc "$(row by_calloc again)"
	cp again stderr
	made by_calloc '700 B 7 700 B'
}

# The pages of the process are looked at, but what it had before is not known, so nothing is said of leaks.
test_resident() {
	begin "$target" spin
	attach --resident -d 1 -o trace -p "$pid"
	[[ $status == 0 ]] || forbidden
	equal status "$status" 0
	kill "$pid"
	grep -q '^Resident memory when the recording ended$' stderr || fail "no section"
	grep -q 'in blocks from before the recording, or kept by the allocator' stderr || fail "no row"
	! grep -q 'leaked' stderr || fail "says what is leaked"
	"$tool" report --json trace >json
	python3 -B "$(dirname "${BASH_SOURCE[0]}")/resident_sums.py" json || fail "the rows do not add up"
}

# An allocator of the program itself, whose functions call each other.
test_own() {
	during "$target"_own counts
	counted
}

test_static() {
	during "$target"_static counts
	counted
	cp "$target"_static bare
	strip bare
	begin ./bare spin
	refuses 126 'malloc and free are not found' -p "$pid"
	kill -0 "$pid" || fail "the program has ended"
}

preload() {
	local library
	library=$(ldconfig -p | sed -n "s/.*x86-64.* => \(.*$1\)\$/\1/p" | head -n 1)
	[[ -n $library ]] || {
		echo "$1 is not installed"
		exit 77
	}
	during env LD_PRELOAD="$library" "${@:2}"
}

test_jemalloc() {
	preload libjemalloc.so.2 "$target" counts
	counted
}

test_tcmalloc() {
	preload libtcmalloc_minimal.so.4 "$target" counts
	counted
}

test_zero() {
	during "$target" zero
	made by_zero '50 B 5 0 B'
	calls 1005
}

# Threads that begin after the tool has attached.
test_threads() {
	during "$target" threads
	equal "the program's status" "$ended" 0
	made by_thread '125.7 KiB 2080 100 B'
	equal "calls failed" "$(tick failed)" 0
}

test_new() {
	during "$target"_new
	equal "the program's status" "$ended" 0
	made by_new '7.9 KiB 203 60 B'
	! grep -q 'operator new does not call' stderr || fail "takes libstdc++'s for another one"
	equal "calls failed" "$(tick failed)" 0
}

# An operator new that does not call malloc: its blocks are counted, and its exceptions arrive.
test_own_new() {
	preload libjemalloc.so.2 "$target"_new
	equal "the program's status" "$ended" 0
	made by_new '7.9 KiB 203 0 B'
	grep -q "^note: .*operator new does not call malloc" stderr || fail "does not say so"
	equal "calls failed" "$(tick failed)" 0
}

# The kernel removes the breakpoints with the main thread, so the recording ends.
test_main_thread() {
	begin "$target" leaves
	: >stderr
	{
		until grep -q 'recording process' stderr; do sleep 0.1; done
		: >go
	} &
	attach -o trace -p "$pid"
	adds_up
	grep -q "process $pid has lost its main thread" stderr || fail "does not say how it ended"
	kill -0 "$pid" || fail "the process has ended"
}

# Calls of malloc that do not return are counted, and those that follow are recorded.
test_jump() {
	during "$target"_own jump
	equal "the program's status" "$ended" 0
	made by_malloc '97.7 KiB 1000 0 B'
	calls 1000 10
	grep -q '10 failed: no return was seen' stderr || fail "does not say why"
}

# A call that has not returned when the recording ends is counted, too.
test_stuck() {
	local in_pause=34
	rm -f go
	begin "$target"_own stuck
	begin_tool
	: >go
	until [[ $(cut -d' ' -f1 "/proc/$pid/syscall") == "$in_pause" ]]; do kill -0 $!; done
	status=0
	kill $!
	wait $! || status=$?
	keep_sums
	adds_up
	calls 1000 1
	grep -q '1 failed: no return was seen' stderr || fail "does not say why"
}

# Children are not recorded, and can go on.
test_forks() {
	during "$target" forks
	equal "the program's status" "$ended" 0
	made by_malloc '4.9 KiB 50 0 B'
	made by_child ''
}

# A child has the breakpoints of its parent only until the tool has noticed it. The parent keeps them. No
# other tool has breakpoints in this program, whose end would remove those of the child, too.
test_child() {
	local child parent tries=0
	rm -f go
	cp "$target"_own own
	begin ./own parent
	parent=$pid
	code_of >code
	begin_tool
	: >go
	until child=$(pgrep -P "$parent"); do kill -0 $!; done
	others+=("$child")
	until pid=$child code_of | cmp -s - code; do
		((++tries < 300)) || fail "the child still has breakpoints"
		sleep 0.1
	done
	! code_of | cmp -s - code || fail "the parent has lost its breakpoints"
	uses 5
	kill -TERM $!
	wait $! || fail "the status of the tool is $?"
	[[ -n $(row by_spin) ]] || fail "records nothing"
}

# Whether the tool, whose number is in $1, has links of many probes.
has_links() { grep -qs 'link_type' "/proc/$1/fdinfo/"*; }

# A kernel without links that report all threads; the tool asks its version.
test_single() {
	local mode
	begin "$target" spin
	begin_tool
	has_links $! || {
		echo "this kernel has no other probes than single ones"
		exit 77
	}
	kill $!
	wait $!
	printf 'exec setarch x86_64 --uname-2.6 "%s" "$@"\n' "$tool" >single
	chmod +x single
	tool=./single
	begin "$target" spin
	begin_tool
	! has_links $! || fail "does not ask for the version"
	kill $!
	wait $!
	for mode in counts threads forks; do
		"test_$mode"
	done
}

test_exec() {
	become='become another program' during "$target" exec burst 500
	equal "the program's status" "$ended" 0
	made by_malloc '97.7 KiB 1000 0 B'
	calls 1000
}

# while_stopped COMMAND...: the tool is stopped while the command works, and goes on after its end.
while_stopped() {
	begin "$@"
	begin_tool
	worker=$(worker_of $!)
	kill -STOP "$worker"
	until grep -q '^State:.T' "/proc/$worker/status"; do :; done
	: >go
	wait "$pid" || fail "the program's status is $?"
	kill -CONT "$worker"
	status=0
	wait $! || status=$?
	keep_sums
	adds_up
}

# The process has ended before the tool sees that it became another program.
test_exec_late() {
	while_stopped "$target" exec burst 5
	grep -q "process $pid has become another program" stderr || fail "does not say how it ended"
	made by_malloc '97.7 KiB 1000 0 B'
	calls 1000
}

# The buffers of the stopped tool run over. All calls are still counted.
test_overrun() {
	while_stopped "$target" burst 60000
	equal "calls expected" "$(tick expected)" 60000
	(($(tick failed) > 0)) || fail "counts no loss"
	grep -q 'failed: no room for the trace' stderr || fail "does not say why"
}

# The code of malloc and free, as the process sees it.
code_of() {
	local address addresses
	read -ra addresses <begun
	for address in "${addresses[@]}"; do
		dd if="/proc/$pid/mem" bs=1 skip=$((address)) count=64 status=none | od -An -tx1
	done
}

# Nothing stays behind but the page of the kernel in which it executes what the breakpoints replace.
left_of() { state_of "$pid" | grep -v '\[uprobes\]'; }

test_detach() {
	local end
	for end in TERM KILL; do
		begin "$target" spin
		left_of >before
		code_of >code
		begin_tool
		uses 5
		left_of >during
		! code_of | cmp -s code || fail "there is no breakpoint"
		kill -"$end" $!
		wait $! 2>/dev/null || true
		left_of >after
		code_of >code_after
		cmp before during || fail "$(diff before during)"
		cmp before after || fail "after SIG$end: $(diff before after)"
		cmp code code_after || fail "after SIG$end: $(diff code code_after)"
		kill -0 "$pid" || fail "the program has ended"
	done
}

# The same process again, and with a time.
test_again() {
	begin "$target" spin
	for _ in 1 2 3; do
		attach_while 5
		adds_up
		grep -q "process $pid goes on" stderr || fail "does not say that the program goes on"
		[[ -n $(row by_spin) ]] || fail "records nothing"
	done
	attach -o trace -d 0.2 -p "$pid"
	adds_up 0
	grep -q "process $pid goes on" stderr || fail "does not say that the program goes on"
}

# Two at a time see the same.
test_together() {
	begin "$target" burst 2000
	"$tool" heap --folded -o other -p "$pid" 2>other.err &
	attached $! other.err
	begin_tool
	: >go
	wait
	keep_sums
	made by_malloc '195.3 KiB 2000 0 B'
	equal "the other one" "$(row by_malloc other.err)" "$(row by_malloc)"
}

# No library could be loaded into this one, and it may only read, write and exit.
test_sandbox() {
	begin "$target" strict
	attach_while 5
	adds_up
	[[ -n $(row by_spin) ]] || fail "records nothing"
	kill -0 "$pid" || fail "the program has ended"
}

# A process that is killed meanwhile.
test_killed() {
	begin "$target" spin
	begin_tool
	uses 5
	kill -KILL "$pid"
	status=0
	wait $! || status=$?
	keep_sums
	adds_up
	grep -q "process $pid has ended" stderr || fail "does not say that the program has ended"
	[[ -n $(row by_spin) ]] || fail "records nothing"
}

test_refused() {
	begin "$target" spin
	refuses 2 'takes a process id' -p x
	refuses 2 '--duration takes' -p "$pid" -d 0
	refuses 2 '--duration needs --pid' -d 1 -- true
	refuses 2 'takes no program' -p "$pid" -- true
	refuses 2 'neither --mode' -p "$pid" --mode patch
	refuses 2 'takes no --interval' -p "$pid" --interval 4096
	refuses 127 'no process 4194305' -p 4194305
	kill "$pid"
	begin "$tool" heap --folded -o recorded -- "$target" spin
	refuses 126 'records it already' -p "$(pgrep -P "$pid")"
	pkill -KILL -P "$pid"
}

# Without rights, and with those that are enough.
test_rights() {
	local rights=+sys_admin,+ipc_lock
	chmod 777 .
	begin setpriv --reuid 65534 --clear-groups "$target" spin
	setpriv --reuid 65534 --clear-groups "$tool" heap --folded -o refused -p "$pid" 2>stderr &&
		fail "records without rights"
	grep -q 'CAP_SYS_ADMIN and CAP_IPC_LOCK' stderr || fail "does not say which rights it needs"
	equal "lines" "$(wc -l <stderr)" 1
	[[ ! -e refused ]] || fail "a file was made"
	as=(setpriv --reuid 65534 --clear-groups --inh-caps "$rights" --ambient-caps "$rights")
	attach_while 5
	adds_up
	[[ -n $(row by_spin) ]] || fail "records nothing"
}

# A full disk ends the recording with one line.
test_full() {
	begin "$target" spin
	(
		ulimit -f 80
		attach -o trace -p "$pid"
		equal status "$status" 126
		equal messages "$(grep -c 'cannot write' stderr)" 1
	)
	kill -0 "$pid" || fail "the program has ended"
}

# Whether the kernel has breakpoints. Whether it also allows them, each test sees.
allowed() {
	[[ -e /sys/bus/event_source/devices/uprobe/type && $UID == 0 ]] || {
		echo "the kernel has no breakpoints (uprobes), or this user no right to them"
		exit 77
	}
}

run_test "$3"
