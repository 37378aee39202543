#!/bin/bash
# SPDX-License-Identifier: MIT
#
# heap_reports.sh TOOL TARGET NAME runs the function test_NAME in a new directory: what the report and its
# files show.
set -euo pipefail
tool=$1 target=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=tests/tool/heap_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/heap_common.sh"

test_text_report() {
	record -o trace -- "$target" leak=50 alloc=300 mixed=10 leak=10 big=70000
	grep -q '^allocated 90.8 KiB in 381 calls$' stderr || fail "no total"
	grep -q '^at the peak 74.2 KiB, still live at exit 5.9 KiB$' stderr ||
		fail "no totals"
	grep -q '^temporary: 321 calls (84.3%)' stderr || fail "no temporary allocations"
	grep -Eq '^ +5.9K +60 +0 +5.9K +5.9K +5.9K +5.9K +5.9K +leak_blocks$' stderr || fail "no leak"
	grep -Eq '^ +14.1K +300 +300 +0 +0 +14.1K +0 +0 +alloc_blocks$' stderr || fail "no site"
	[[ $(wc -L <stderr) -le 200 ]] || fail "too wide"
	[[ $(wc -l <stderr) -le 60 ]] || fail "longer than a page"
	grep -Eq '^ +68.4 KiB +[0-9.]+% main( .*)?$' stderr || fail "no context on the line of its weight"
	! grep -q '^Allocated: ' stderr || fail "the page has a section of the full report"
	"$tool" report --full trace >full || fail "status $?"
	grep -q '^Allocated: 90.8 KiB, hottest contexts$' full || fail "not in the full report"
	grep -Eq '^ +320  alloc_blocks' full && fail "a sum of two functions"
	grep -Eq '^ +300  alloc_blocks( .*)?$' full || fail "no temporary allocations by line"
	grep -Eq '^ +below 128 B +[0-9]+ ' full || fail "no sizes"
	grep -Eq ';main;run_step;leak_blocks 6000$' trace.folded || fail "$(cat trace.folded)"
	# As wide as the terminal: script(1) makes one of 70 columns.
	if command -v script >/dev/null; then
		script -qec "stty cols 70; '$tool' report trace" /dev/null >wide </dev/null
		# On a busy machine a line of progress stands before what replaces it.
		sed -e 's/.*\x1b\[K//' -e '/^flame/d' wide | tr -d '\r' >lines
		[[ $(wc -L <lines) -le 70 ]] || fail "$(cat wide)"
	fi
}

# What the report prints is what the files have, to the byte, of each function and kind.
test_sums_agree() {
	local program
	for program in "$target leak=50 alloc=300 mixed=10 big=70000 deep=400" \
		"$(dirname "$target")/../crosscheck/threads 1"; do
		# shellcheck disable=SC2086 # words
		record -o trace -- $program
		equal "status of $program" "$status" 0
		python3 "$here/report_sums.py" "$tool" trace || fail "$program"
	done
}

# The report of a thread that another thread frees for.
test_threads_are_told() {
	record -o trace -- "$target" threads=2:100
	"$tool" report --full trace >full || fail "status $?"
	grep -Eq '^ +allocated +calls +live at exit +tid +thread$' full || fail "no threads"
	[[ $(sed -n '/ tid  thread$/,$p' full | grep -Ec '^ +[0-9.]+ [KM]?i?B +[0-9]+ +[0-9.]+ [KM]?i?B +[0-9]+  ') == 3 ]] ||
		fail "$(cat full)"
	equal "calls of the threads" "$(awk '/ tid  thread$/ { on = 1; next } on && NF >= 7 && $3 == 100 { n++ } END { print n + 0 }' full)" 2
}

# The peak of the process is the kernel's; a process that was killed has none.
test_memory_of_the_process() {
	record -o trace -- "$target" leak=50
	grep -Eq "^the process's peak was [0-9.]+ MiB; malloc saw 4.9 KiB$" \
		stderr || fail "no peak"
	! grep -q '^hint: ' stderr || fail "the program is no interpreter"
	! grep -q '^at exit ' stderr || fail "nothing was mapped"
	# The memory that the program maps by itself is not malloc's.
	record -o trace -- "$target" map=100000000
	grep -Eq '^at exit it had (9[0-9]|10[0-9])\.[0-9] MiB more than malloc ever handed out: ' stderr ||
		fail "not said"
	record -o trace -- "$target" leak=50 kill
	! grep -q "^the process's peak" stderr || fail "a peak of a process that was killed"
	# A hint for an interpreter, whose name alone matters.
	cp "$target" python3
	record -o trace -- ./python3 leak=50
	grep -q '^hint: Python keeps small objects where malloc does not see them, unless PYTHONMALLOC=malloc is set$' stderr || fail "no hint"
	# reason: ALL_BY_MALLOC
	record -o trace -- env PYTHONMALLOC=malloc ./python3 leak=50
	! grep -q '^hint: ' stderr || fail "a hint to do what was done"
}

test_options_without_effect() {
	record -o trace -- "$target" leak=50
	local options
	for options in '--json --full' '--json -o other'; do
		# shellcheck disable=SC2086 # words
		"$tool" report $options trace >stdout 2>stderr && fail "$options are taken"
		equal "lines of the message" "$(wc -l <stderr)" 1
		grep -q 'has no effect with --json; leave it out$' stderr || fail "not said"
	done
	"$tool" report --full trace.folded >stdout 2>stderr && fail "taken for a profile"
	grep -q 'has no effect on the report of a profile' stderr || fail "not said"
	"$tool" report . >stdout 2>stderr && fail "a directory is taken"
	grep -iq 'cannot read \.: is a directory$' stderr || fail "not said"
}

# JSON only: no other file is written.
test_json() {
	record -o trace -- "$target" leak=50 alloc=300
	rm trace.*
	"$tool" report --json trace >report.json || fail "status $?"
	[[ ! -e trace.html && ! -e trace.folded ]] || fail "by-products"
	python3 - <<-'END' || fail "$(cat report.json)"
		import json
		report = json.load(open("report.json"))
		assert (report["format"], report["version"]) == ("incstack report", 1)
		assert [kind["name"] for kind in report["kinds"]] == [
		    "allocated", "allocations", "temporary", "live at peak", "live at exit"]
		assert report["end"] == {"status": 0}
		own = {f["function"]: f["own"] for f in report["functions"]}
		assert own["leak_blocks"] == [5000, 50, 0, 5000, 5000], own
		assert own["alloc_blocks"][:3] == [14400, 300, 300], own
		assert sum(t["calls"] for t in report["threads"]) == report["kinds"][1]["total"]
		assert sum(s["bytes"] for s in report["sizes"]) == report["kinds"][0]["total"]
		assert report["memory"]["process_peak"] > report["memory"]["malloc_peak"] > 5000
	END
}

# A long recording shows on a terminal that it goes on. The program lasts longer than it takes to show that.
test_progress() {
	command -v script >/dev/null || return 0
	script -qec "'$tool' heap -o trace -- bash -c 'sleep 6; true'" /dev/null >shown </dev/null
	grep -Eq 'incstack: [0-9]+ s, [0-9]+ allocations, the file has [0-9.]+ [KM]iB ' shown || fail "$(cat -v shown)"
	record -o trace -- bash -c 'sleep 3; true'
	! grep -q ' allocations, the file has ' stderr || fail "stderr is no terminal"
}

# The program of README.md: the report has the lines that README.md shows.
test_leak_of_readme() {
	local readme=$here/../../README.md line
	record -o trace -- "$(dirname "$target")/../../examples/leak"
	for line in 'remember  leak.c:31' 'answer_one  leak.c:47' 'remember  leak.c:35' 'main  leak.c:54'; do
		grep -q "$line\$" stderr || fail "the report has not: $line"
		grep -q "$line\$" "$readme" || fail "README.md has not: $line"
	done
	sed -n '/^Still live at exit, by line$/,/^$/p' stderr | grep -q '^ *1015.6 KiB  remember  leak.c:31$' ||
		fail "not by line"
}

# C++ names are readable, and operator new is not what allocates.
test_cxx_names() {
	record -o trace -- "$(dirname "$target")/../crosscheck/threads" 1
	equal status "$status" 0
	grep -q ';(anonymous namespace)::grow(unsigned int, unsigned int);' trace.folded ||
		fail "mangled"
	! grep -Eq '^( +[0-9.]+[KM]?){5,} +operator new' stderr ||
		fail "operator new is in the table"
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
	record -o trace -- "$target" below=50:5
	grep -Eq '^ +\.\.\. which calls itself, (49|5[0-2]) deep$' stderr || fail "recursion is not folded"
	grep -q '^                    _start$' stderr || fail "the outer end is not shown"
}

# Counters that another process has overwritten are left out, and that is said.
test_damaged_counters() {
	record -o trace -- "$target" alloc=100
	unpack trace
	head -c 40 trace | dd of=trace bs=1 seek=$((4096 + 5 * 64)) conv=notrunc status=none
	"$tool" report --folded trace >shown
	grep -q '^warning: the counters of 1 threads are inconsistent' shown || fail "not said"
	! grep -Eq '[0-9]{12}' shown || fail "a number that cannot be"
}

# A file has its name when it is whole; until then it is that of before.
test_whole_files() {
	record -o trace -- "$target" alloc=50
	cp trace.html before
	(ulimit -f 2 && "$tool" report --folded trace) >shown 2>&1 && fail "it fitted" # SIGXFSZ
	cmp trace.html before || fail "another trace.html"
	(trap '' XFSZ && ulimit -f 2 && "$tool" report --folded trace) >shown 2>&1 && fail "it fitted"
	cmp trace.html before || fail "another trace.html"
	equal "temporary files" "$(find . -name '*.part')" ''
	# A symbolic link stays one, and permissions stay.
	mv trace.html elsewhere && ln -s elsewhere trace.html && chmod 600 elsewhere
	: >elsewhere
	"$tool" report --folded trace >shown || fail "status $?"
	[[ -L trace.html && -s elsewhere ]] || fail "the link was replaced"
	equal permissions "$(stat -c %a elsewhere)" 600
}

# Nobody reads the pipe, so the report would wait for ever.
test_report_is_ended() {
	local signal
	for signal in TERM:143 HUP:129 INT:130; do
		rm -f trace*
		mkfifo trace.folded
		# The shell starts what is in the background with SIGINT ignored.
		(trap - INT && exec "$tool" heap --folded -o trace -- "$target" alloc=50) \
			>stdout 2>stderr </dev/null &
		until [[ -e trace.html ]]; do sleep 0.1; done
		sleep 0.2
		kill "-${signal%:*}" $!
		status=0
		wait $! || status=$?
		equal "status after ${signal%:*}" "$status" "${signal#*:}"
	done
}

# The report at the end of a recording leaves out what the report on its file would leave out.
test_filters() {
	local status=0
	echo 'leak:leak_blocks' >known
	record -o trace --suppressions known --skip run_step -- "$target" leak=15 alloc=100
	equal status "$status" 0
	grep -q '^suppressed 1 context, 1.5 KiB of' stderr || fail "not suppressed"
	"$tool" report --suppressions known --skip run_step trace >again
	diff -B <(sed -n '/^Heap profile/,/^more: /p' stderr | grep -v '^more: ') again || fail "another report"
	record -o trace --focus 'alloc_*' -- "$target" leak=15 alloc=100
	grep -q '^in focus: ' stderr || fail "no focus"
	! grep -q leak_blocks stderr || fail "outside of the focus"
	# The recording cannot be repeated, so the report is made.
	record -o trace --focus nosuch -- "$target" leak=15
	equal status "$status" 0
	equal lines "$(grep -c "^incstack: no context has a function that matches --focus 'nosuch'" stderr)" 1
	grep -q leak_blocks stderr || fail "no report"
	"$tool" report --focus nosuch trace >again 2>said || status=$?
	equal "status without a function in focus" "$status" 1
	equal lines "$(wc -l <said)" 1
	rm trace
	refuse 2 'cannot read nosuch: No such file' -o trace --suppressions nosuch -- touch ran
	[[ ! -e ran ]] || fail "the program ran"
}

# The function of the recorder that calls libc's is not shown between the program and libc.
test_no_frame_of_ours() {
	record -o trace -- "$target" threads=2:30
	"$tool" report --full trace >full
	grep -q 'pthread_create' full || fail "no thread"
	! grep -q 'create\.c:[0-9]*$' <(grep -v 'pthread_create\.c' full) || fail "$(cat full)"
}

# A wrong option gets two lines, not the whole help.
test_wrong_option() {
	local command status
	for command in heap cpu report convert compare merge resolve; do
		status=0
		"$tool" $command --nosuch >stdout 2>stderr || status=$?
		equal "status of $command" "$status" 2
		equal "lines of $command" "$(wc -l <stderr)" 2
		grep -q "see incstack $command --help" stderr || fail "$command"
	done
	status=0
	"$tool" nosuch 2>stderr || status=$?
	equal "status of no command" "$status" 2
	equal lines "$(wc -l <stderr)" 1
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
