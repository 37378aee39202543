#!/bin/bash
# SPDX-License-Identifier: MIT
#
# heap_ends.sh TOOL TARGET NAME runs the function test_NAME in a new directory. However and whenever a program
# ends, what it had recorded is in the file.
set -euo pipefail
tool=$1 target=$2 crash=$(dirname "$2")/crash

# shellcheck source=tests/tool/heap_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/heap_common.sh"

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
		"$tool" report --folded trace >shown
		for shown in shown stderr; do
			grep -q "killed by ${end#*:}" "$shown" || fail "$shown: not reported again"
			grep -A 2 '^The newest recorded allocation .* on thread 1:$' "$shown" |
				grep -q '^ *leak_blocks  target.c:[0-9]*$' || fail "$shown: another allocation"
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

# A signal for the tool is the program's: that ends, and the report comes.
test_ended_from_outside() {
	local signal
	mkfifo never
	for signal in TERM:143 HUP:129; do
		rm -f ready
		"$tool" heap --folded -o trace -- bash -c ': >ready; read -r <never' \
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
		"$tool" report --folded trace.*.0 >shown
		grep -q '^allocated 379.4 KiB in 500 calls$' shown || fail "$(cat shown)"
		[[ -z $(find . -name '*.live') ]] || fail "a spool is still there"
		rm trace.*
	done
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

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
