#!/bin/bash
# SPDX-License-Identifier: MIT
#
# cpu.sh TOOL TARGET NAME runs the function test_NAME in a new directory. TARGET uses CPU time in
# functions with known names.
set -euo pipefail
tool=$1 target=$2
manual=$(realpath "$(dirname "${BASH_SOURCE[0]}")")/../../man/incstack-cpu.1

# shellcheck source=tests/tool/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# record ARGUMENTS...: incstack cpu, whatever its exit status, which is in $status.
record() {
	status=0
	timeout 280 "$tool" cpu --folded "$@" >stdout 2>stderr </dev/null || status=$?
	keep_sums
}

has() { (($(spent "$1") > 0)) || fail "no time in $1"; }

# Nanoseconds of all ticks that have an event. Those that interrupted the recorder, or came when their
# thread had no record, have none.
ticks_with_events() {
	local without
	without=$(sed -nE 's/^ *([0-9]+) failed: the (recorder was|thread had).*/\1/p' stderr |
		awk '{ sum += $1 } END { print sum + 0 }')
	echo $((($(tick expected) - without) * 1000000))
}

adds_up() {
	equal expected "$(tick expected)" \
		$(($(tick taken) + $(tick queued) + $(tick failed) + $(tick merged)))
	equal traces "$(value traces)" "$(tick taken)"
	equal mismatches "$(value mismatches)" 0
	equal "lost traces" "$(value lost)" 0
}

test_spin() {
	record -o trace --crosscheck -- "$target" spin
	equal status "$status" 0
	adds_up
	equal crosschecked "$(value crosschecked)" "$(value traces)"
	has ';main;outer;inner '
	# The sum of all contexts is the time that the report states: so many ticks.
	equal "all time" "$(spent .)" "$(ticks_with_events)"
	grep -q 'CPU time were sampled' stderr || fail "no time in the report"
	grep -q '% *outer$' stderr || fail "no table of functions"
	[[ -s trace.html ]] || fail "no flame graph"
	"$tool" report --folded trace >again 2>&1
	grep -q '% *outer$' again || fail "the report cannot be repeated"
}

# The shares of three functions against those that the program has measured by the clock of its thread. The
# bound is seven standard deviations of as many random choices, because samples do not stand for the same
# time: on a busy machine some stand for many ticks.
test_shares() {
	local name truth all seen
	record -o trace -i 1ms -- "${target%_target}_shares" 6
	equal status "$status" 0
	adds_up
	(($(tick taken) >= 100)) || fail "too few samples"
	equal "truncated traces, though no call lets the recorder do more than a handler may" \
		"$(value truncated)" 0
	all=$(awk '{ sum += $2 } END { printf "%.0f", sum }' stdout)
	seen=$(spent ';by_(loop|leaf|ends)[; ]')
	while read -r name truth; do
		echo "$name: $truth of $all, seen $(spent ";$name[; ]") of $seen"
		awk -v truth="$truth" -v all="$all" -v part="$(spent ";$name[; ]")" -v seen="$seen" \
			-v count="$(tick taken)" 'BEGIN {
				share = truth / all
				bound = 7 * sqrt(share * (1 - share) / count) + 0.005
				off = part / seen - share
				printf "off by %.4f, at most %.4f\n", off, bound
				exit off > bound || -off > bound
			}' || fail "the share of $name is wrong"
	done <stdout
}

test_modes() {
	local mode
	for mode in patch validate full; do
		record -o trace --crosscheck=own --mode "$mode" -i 2ms -- "$target" spin
		equal status "$status" 0
		equal mode "$(value mode)" "$mode"
		adds_up
		has ';main;outer;inner '
	done
}

# Nothing that a program does with signals keeps its threads from being sampled.
test_signals() {
	local how
	for how in masked sigprof users; do
		record -o trace --crosscheck -- "$target" "$how"
		equal "status of $how" "$status" 0
		adds_up
		has 'outer;inner '
	done
	record -o trace -- "$target" masked
	has ';masked;outer;inner '
}

# Whatever the limit is, either the time is sampled, or the report says what is missing and why. The limit is set
# before the recording: Linux 6.18 sometimes runs no timer of CPU time in a program after an exec by a process
# that had such a timer.
test_memory_limits() {
	local limit seen=""
	for limit in {6000..20000..2000}; do
		rm -f trace*
		(
			ulimit -v "$limit"
			LD_PRELOAD=$(dirname "$tool")/libincstack_preload.so \
				INCSTACK_HEAP="kind=1;interval=1000000;file=$PWD/trace" "$target" spin
		) >stdout 2>stderr || fail "status at $limit: $?"
		"$tool" report --folded trace >stderr 2>&1 || true
		grep -q 'or memory for its samples' stderr && seen+=" $limit"
		grep -qE '[1-9][0-9]* gave a trace|note: .*(nothing was recorded|its time is missing)' stderr ||
			fail "limit $limit: nothing was sampled, and nothing is said"
	done
	[[ -n $seen ]] || fail "no thread was without a record"
}

# A thread that ends before its timer ticks has used CPU time, too.
test_no_tick() {
	record -o trace -i 1s -- "$target" spin
	equal status "$status" 0
	equal taken "$(tick taken)" 0
	grep -qE 'the clocks of the threads say [1-9]' stderr || fail "$(cat stderr)"
}

# Without its timer, a thread uses time that nobody samples.
test_untimed() {
	record -o trace --ticks timers -- "$target" untimed
	equal status "$status" 0
	equal taken "$(tick taken)" 0
	grep -q 'the kernel did not run its timers' stderr || fail "$(cat stderr)"
}

# libc takes the signal of the timers for itself when it makes the first thread.
test_created() {
	record -o trace -- "$target" created
	equal status "$status" 0
	adds_up
	has ';main;created;outer;inner '
}

# elapsed INTERVAL WALKER HOW...: records the target with timers of elapsed time, which tick more often
# than those of CPU time can. The interval is in nanoseconds.
elapsed() {
	local interval=$1 walker=$2
	shift 2
	rm -f trace*
	LD_PRELOAD=$(dirname "$tool")/libincstack_preload.so \
		INCSTACK_HEAP="kind=1;elapsed=1;interval=$interval;crosscheck=$walker;file=$PWD/trace" \
		"$target" "$@" >stdout 2>stderr || fail "$1: exit status $?"
	"$tool" report --folded trace >report 2>>stderr
	[[ $walker == no ]] ||
		(($(sed -n 's/^\([0-9]*\) traces were compared .* 0 differ$/\1/p' report) > 0)) ||
		fail "$(cat report)"
}

# Such a thread is served by its handler alone, until it has filled its log several times.
test_quiet() {
	elapsed 100000 own quiet "$PWD/trace"
	has ';quiet;outer;inner '
}

# Memory was set aside for the handler of each of many such threads.
test_crowd() {
	elapsed 1000000 no crowd
	has ';crowded;descend;.*;inner '
	! grep 'failed: no room' report || fail "$(cat report)"
}

# A sample in vfork is one of its caller. Of the ticks that have an event, few have no trace.
test_vforks() {
	record -o trace --crosscheck -- "$target" vfork
	equal status "$status" 0
	adds_up
	has ';main;many_vforks '
	((10 * $(spent 'no trace') <= $(spent .))) || fail "$(cat trace.folded)"
}

# The sample needs more stack than the program has there.
test_fiber() {
	elapsed 100000 own fiber
	has ';outer;inner '
	! grep 'the clocks of the threads say 0 ns' report || fail "the thread used no time"
}

# Calls that the kernel does not restart after a signal are counted. If a second tick comes before the
# program has run an instruction, the call looks as if it was made again.
test_failed_calls() {
	local interrupted counted
	elapsed 5000000 no waits
	interrupted=$(sed -n 's/ interrupted$//p' stdout)
	((interrupted > 0)) || fail "nothing was interrupted"
	counted=$(sed -n 's/ system calls of the program returned EINTR .*//p' report)
	((counted >= interrupted && counted <= interrupted + 3)) ||
		fail "$interrupted calls were interrupted: $(cat report)"
}

# Threads that throw, fork, execute, load and unload, and end, under as many signals as come.
test_storm() {
	local storm
	storm=$(dirname "$target")/cpu_storm
	record -o trace -i 100us --crosscheck -- "$storm" 1 "$(dirname "$target")/plugin.so"
	equal status "$status" 0
	grep -q ' 0 wrong$' stdout || fail "the program's results are wrong"
	adds_up
	(($(value crosschecked) > 0)) || fail "nothing was compared"
	rm -f trace*
	LD_PRELOAD=$(dirname "$tool")/libincstack_preload.so \
		INCSTACK_HEAP="kind=1;elapsed=1;interval=200000;file=$PWD/trace" \
		"$storm" 1 "$(dirname "$target")/plugin.so" >stdout 2>stderr || fail "storm: $?"
	grep -q ' 0 wrong$' stdout || fail "the program's results are wrong"
	"$tool" report --folded trace >report 2>&1
	has 'sum_down'
}

# begins_with NAME FUNCTION: whether all contexts of the function, of which there are some, begin with
# that name.
begins_with() {
	local all below
	all=$(grep -c ";$2" trace.folded) || fail "no context of $2"
	below=$(grep -c "^$1;.*;$2" trace.folded) || fail "$2 is not below $1"
	equal "contexts of $2 below $1" "$below" "$all"
}

# The contexts of a thread begin with the name that it had last, those of both kinds of profiles.
test_threads() {
	record -o trace -t --crosscheck -- "$target" named
	equal status "$status" 0
	adds_up
	begins_with red 'red;outer;inner '
	begins_with late 'waiting;outer;inner '
	begins_with cpu_target 'main;named;outer;inner '
	equal "all time" "$(spent .)" "$(ticks_with_events)"
	"$tool" report --folded trace >/dev/null
	equal "time below a name without -t" "$(spent '^red;')" 0
	"$tool" report --folded -t trace >report
	begins_with red 'red;outer;inner '
	grep -q '% *red$' report || fail "no thread in the report"
	"$tool" heap --folded -o trace -t -- "$target" named 2>stderr || fail "heap: exit status $?"
	begins_with red 'red;allocate '
	begins_with late 'waiting;allocate '
	record -o trace -t -- "$target" killed
	equal "status when killed" "$status" 137
	begins_with cpu_target 'main;outer;inner '
}

# The samples have times and threads in Firefox files, and in the page.
test_timeline() {
	record -o trace -- "$target" named
	equal status "$status" 0
	grep -q '^\["late",[0-9]*,[0-9]*,\[' trace.html || fail "no timeline in the page"
	"$tool" convert trace trace.firefox.json
	python3 - "$(ticks_with_events)" <<-'CHECK' || fail "wrong times"
		import json, sys
		seen = {}
		weight = 0
		for thread in json.load(open("trace.firefox.json"))["threads"]:
		    samples = thread["samples"]
		    assert samples["time"] == sorted(samples["time"]) and thread["tid"] > 1
		    assert len(samples["time"]) == len(samples["stack"]) == samples["length"] > 1
		    seen.setdefault(thread["name"], []).append((samples["time"][0], samples["time"][-1]))
		    assert samples["weightType"] == "tracing-ms"
		    weight += round(sum(samples["weight"]) * 1000000)
		assert len(seen["red"]) == 2 and len(seen["late"]) == 1 == len(seen["cpu_target"]), seen
		(first, second), late, whole = sorted(seen["red"]), seen["late"][0], seen["cpu_target"][0]
		assert 0 <= first[0] < first[1] < second[0] < second[1] < late[0] < late[1] < whole[1], seen
		assert weight == int(sys.argv[1]), weight
	CHECK
	"$tool" convert -t trace trace.pb.gz 2>/dev/null
	"$tool" convert trace.pb.gz trace.folded 2>/dev/null
	begins_with late 'waiting;outer;inner '
}

test_ends() {
	record -o trace -- "$target" killed
	equal status "$status" 137
	has ';main;outer;inner '
	grep -q 'killed by SIGKILL' stderr || fail "says nothing of the signal"
	equal expected "$(tick expected)" \
		$(($(tick taken) + $(tick queued) + $(tick failed) + $(tick merged)))
	record -o trace -i 1ms -- "${target%_target}_shares" 2 killed
	equal status "$status" 137
	(($(spent '\[callers') * 4 < $(spent .))) || fail "too many callers are unknown"
	record -o trace -- "$target" exec spin
	equal status "$status" 0
	has ';main;outer;inner '
	[[ $(ls trace.*.0) ]] || fail "no file of the first program"
	adds_up
}

test_children() {
	rm -f trace*
	record -o trace -- "$target" fork
	equal status "$status" 0
	equal "children's time" "$(spent outer)" 0
	record -o trace --follow-children -- "$target" fork
	equal status "$status" 0
	adds_up
	"$tool" report --folded "$(ls trace.*.0)" >/dev/null
	grep -q 'outer;inner' trace.*.0.folded || fail "the child has no time"
}

test_options() {
	local wrong
	for wrong in 0 1 99us 1m -1ms 4000s 1.5ms 99999999999999999999s ms; do
		record "--interval=$wrong" -- "$target"
		equal "status with $wrong" "$status" 2
		grep -q -- '--interval takes a time' stderr || fail "does not explain --interval"
	done
	record
	equal "status without a program" "$status" 2
	grep -q 'incstack cpu -- PROGRAM' stderr || fail "does not say what is missing"
	record --mode=nothing -- "$target"
	equal "status with a wrong mode" "$status" 2
	record -- ./no-such-program
	equal "status without the program" "$status" 127
	record -i 100us -o trace -- "$target"
	equal status "$status" 0
	adds_up
	record -- "$target"
	ls incstack.*.cpu >/dev/null || fail "the file has another name"
	record --help
	equal "status of help" "$status" 0
	grep -q 'usage: incstack cpu' stdout || fail "no help"
}

# Each option of the help stands in the manual page.
test_manual() {
	local option
	"$tool" cpu --help | sed -n 's/^  .*\(--[a-z-]*\).*$/\1/p' | grep -v help | sort -u >options
	[[ $(wc -l <options) -ge 5 ]] || fail "too few options"
	while read -r option; do
		grep -q "Fl -${option#--}" "$manual" || fail "the manual lacks $option"
	done <options
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
