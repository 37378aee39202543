#!/bin/bash
# SPDX-License-Identifier: MIT
#
# traces.sh TOOL TARGET NAME runs the function test_NAME in a new directory: what the commands on profiles do
# with trace files, and what they refuse to do.
set -euo pipefail
tool=$1 target=$2
cd "$(mktemp -d)" || exit 1
trap 'rm -rf "$PWD"' EXIT

# shellcheck source=tests/tool/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

record() {
	"$tool" heap --folded -o "$1" -- "$target" "${@:2}" >stdout 2>stderr </dev/null || fail "status $?"
}

# run EXPECTED ARGUMENTS...: the tool with that status; what it prints is in said.
run() {
	local status=0
	"$tool" "${@:2}" >said 2>&1 </dev/null || status=$?
	equal "status of $*" "$status" "$1"
}

# refused OPTION ARGUMENTS...: one line that names the option.
refused() {
	run 2 "${@:2}"
	equal "lines of ${*:2}" "$(wc -l <said)" 1
	grep -q -- "$1" said || fail "${*:2}: $(<said)"
}

# section TITLE: its contexts, each as one line.
section() {
	awk -v title="$1" 'index($0, title) == 1 { on = 1; next } on && /^[^ ]/ { exit } on && /^$/ { exit }
		{ sub(/^ +/, "") } on && sub(/^[0-9.]+( [KMG]?i?B)? +[0-9.]+% /, "") { print line; line = ";" $0; next }
		on { line = line ";" $0 } END { print line }' said
}

test_compare_and_merge() {
	record one alloc=10 below=3:5
	record two alloc=20
	run 0 compare one one
	equal "kinds with a difference" "$(grep -c ' after, difference ' said)" 0
	grep -q '^allocated: [0-9]* B before, [0-9]* B after, no difference$' said || fail "$(<said)"
	run 0 compare --similarity one one
	grep -q '^degree of overlap  *1.000 *1.000 *1.000$' said || fail "$(<said)"
	run 0 compare one two --html difference.html
	grep -q '^ *-5 *5 *0   .*alloc_below > alloc_blocks (gone)$' said || fail "$(<said)"
	grep -q '^ *+5 *15 *20   alloc_blocks' said || fail "$(<said)"
	[[ -s difference.html ]] || fail "no flame graph"
	"$tool" convert two two.pb.gz 2>said
	run 0 compare one two two.pb.gz
	run 0 merge -o sum.folded one two two.pb.gz
	cat one.folded two.folded two.folded | awk '{ sum[$1] += $2 } END { for (i in sum) print i, sum[i] }' | sort >right
	sort sum.folded | diff - right || fail "a wrong sum"
	run 0 merge -k allocations -o sum.folded one two
	equal "allocations" "$(awk '/;alloc_blocks / { sum += $NF } END { print sum }' sum.folded)" 35
	run 0 merge -t -o sum.folded one two
	! grep -v '^target;' sum.folded || fail "contexts of no thread"
	run 0 compare -t one two
	: >nothing
	run 2 merge -o sum.folded one nothing
	grep -q 'nothing: neither its suffix nor its content shows its format' said || fail "$(<said)"
}

# A program's wrapper of malloc, which its callers ask for different sizes: all outputs name the callers, and a leak that
# is known is no leak.
test_allocators() {
	printf '%s\n' '#include <stdlib.h>' 'void *volatile p;' \
		'#define F(name) __attribute__((noinline, noclone)) void name' \
		'__attribute__((noinline, noclone)) void *my_alloc(size_t n) { p = malloc(n); return p; }' \
		'F(a)(void) { p = my_alloc(1000); }' 'F(b)(void) { p = my_alloc(2000); }' \
		'F(c)(void) { p = my_alloc(4000); }' 'int main(void) { a(); b(); c(); return !p; }' >w.c
	cc -O1 -o w w.c
	"$tool" heap -o w.heap -- ./w >stdout 2>stderr </dev/null
	grep -q '^looked through my_alloc (guessed); --allocators shows them$' stderr || fail "$(<stderr)"
	run 0 convert w.heap w.folded
	equal "contexts" "$(sed 's/.*main;//' w.folded | sort | tr '\n' ' ')" "a 1000 b 2000 c 4000 "
	run 0 convert --allocators w.heap w.folded
	equal "contexts with allocators" "$(grep -c ';my_alloc [124]000$' w.folded)" 3
	run 0 merge --focus b -k 'live at exit' -o w.folded w.heap w.heap
	equal "contexts in focus" "$(sed 's/.*main;//' w.folded)" "b 4000"
	echo 'leak:^c$' >known
	run 0 report --suppressions known -k 'live at exit' w.heap
	grep -q '^Still live at exit: 2.9 KiB' said || fail "$(<said)"
	grep -q "^suppressed 1 context, 3.9 KiB of 'live at exit'\$" said || fail "$(<said)"
	head -c $(($(stat -c %s w.heap) - 1)) w.heap >cut.heap
	run 1 compare --fail-if 'live at exit' +0 w.heap cut.heap
	grep -q -e '--fail-if cannot judge cut.heap, a part of which is missing$' said || fail "not said"
	run 0 compare w.heap cut.heap
	run 0 compare --suppressions known --fail-if 'live at exit' +0 w.heap w.heap
}

# A file without a suffix may be of any format, if one is named.
test_named_formats() {
	record one alloc=10
	"$tool" convert one bare.pb.gz 2>said
	mv bare.pb.gz bare
	run 0 merge -F pprof -o sum.folded bare bare
	run 0 compare -F pprof bare bare
	run 0 report -f pprof bare
	run 1 compare -F folded one one
}

test_top() {
	record one alloc=10 below=3:5 threads=2:3 variable=10 leak=1
	run 0 report --full --folded one
	(($(section Allocations | wc -l) <= 11)) || fail "too many contexts"
	run 0 report --full --folded -n 1 one
	equal "functions" "$(sed -n '/  function$/,/^$/p' said | wc -l)" 3
	equal "contexts" "$(grep -cE '^ *[0-9.]+( [KMG]?i?B)? +[0-9.]+% ' said)" 5
	run 0 report --full --folded --top 1000 one
	equal "contexts" "$(section Allocations | tail -n +2 | wc -l)" \
		"$(grep -cE ' [0-9]+$' one.folded)"
	run 0 report --folded --top 0 one
	! grep -q 'hottest contexts$' said || fail "contexts"
}

test_kind() {
	local kind
	record one alloc=10 leak=15
	run 0 report --folded -k allocations one
	equal "sections" "$(grep -c 'hottest contexts$' said)" 1
	grep -q '^Allocations: ' said || fail "another section"
	"$tool" convert -k allocations one right.folded 2>said
	cmp one.folded right.folded || fail "the folded stacks have another kind"
	for kind in 'live at exit' 'live at peak' allocated; do
		run 0 report --folded -k "$kind" -o "$kind" one
		"$tool" convert -k "$kind" one right.folded 2>said
		cmp "$kind.folded" right.folded || fail "the folded stacks have another kind"
	done
	run 2 report -k sizes one
	grep -q "there are: 'allocated' 'allocations' 'temporary' 'live at peak' 'live at exit'" said || fail "$(<said)"
	"$tool" cpu --folded -o two -- "$target" alloc=3000000 >stdout 2>stderr </dev/null
	run 0 report --folded -k samples two
	! grep -q '^CPU time: ' said || fail "another section"
	run 0 report --folded -k 'CPU time' -n 1 two
	! grep -q '^Samples: ' said || fail "another section"
}

# Two calls in one function are one context, as they are printed alike.
test_equal_contexts() {
	local title
	record one variable=100 alloc=3 below=1:5 leak=15
	run 0 report --full --folded -n 1000 one
	for title in Allocated Allocations 'Live at the peak' 'Still live at exit'; do
		equal "$title: equal contexts" "$(section "$title" | tail -n +2 | sort | uniq -d | wc -l)" 0
	done
	section Allocations | tail -n +2 | sed -E 's/  [^ ;]*:[0-9]+//g' | sort -u >contexts
	sed 's/ [0-9]*$//' one.folded | awk -F';' '{ line = ""; for (i = NF; i > 0; i--) line = line ";" $i; print line }' |
		sort -u | comm -13 contexts - >missing
	equal "missing contexts" "$(wc -l <missing)" 0
	# Frames that differ in what is not printed.
	cat >one.speedscope.json <<'JSON'
{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"one"},
{"name":"two","file":"a.c"},{"name":"two","file":"b.c"}]},"profiles":[{"type":"sampled","name":"p",
"unit":"none","startValue":0,"endValue":7,"samples":[[0,1],[0,2]],"weights":[3,4]}]}
JSON
	run 0 report -n 1000 one.speedscope.json
	grep -q '^ *7 100.0%  one > two$' said || fail "$(<said)"
	grep -q ' in 2 contexts$' said || fail "$(<said)"
}

# A recursive call becomes a part of the function's youngest call.
test_recursion() {
	printf '%s\n' 'main;f;f;g;f 5' 'main;f;g 2' 'main;g;f;g;h 1' >one.folded
	run 0 convert -r one.folded two.folded
	sort two.folded >said
	equal "folded recursion" "$(<said)" $'main;f 5\nmain;f;g 2\nmain;g;h 1'
	"$tool" cpu --folded -o one -- "$target" alloc=3000000 >stdout 2>stderr </dev/null
	run 0 convert --fold-recursion one one.html
	grep -q '"timeline":{' one.html || fail "the page has lost when each thread was sampled"
}

# An option that would have no effect is refused.
test_options_without_effect() {
	local option
	record one alloc=10
	for option in -T0.5 -a -r; do refused "${option:0:2}" report $option one; done
	for option in -T0.5 -a -t -r -oprefix; do refused "${option:0:2}" report $option one.folded; done
	for option in -T0.5 -a -n3 -oother; do refused "${option:0:2}" convert $option one two.folded; done
	refused -k convert -k allocated one two.html
	refused -k convert -k allocated one two.pb.gz
	refused -t convert -t one.folded two.pb.gz
	for option in -T0.5 -n3 -r; do refused "${option:0:2}" merge $option -o two.folded one one; done
	refused -t merge -t -o two.folded one.folded
	refused -k merge -k allocated -o two.html one
	refused -a compare -a one one
	refused -r compare -r one one
	refused --max-output compare --max-output 9 one one
	refused --max-output report --max-output 9 one
	refused -t compare -t one.folded one.folded
	refused -n compare -n 3 one one one
	[[ ! -e two.folded && ! -e two.html && ! -e two.pb.gz ]] || fail "something was written"
}

# What cannot be printed is no success.
test_output_is_lost() {
	local command
	record one alloc=10
	for command in "report one.folded" "report one" "compare one one" "convert one - -f folded" help \
		"help report" "heap --help" --version; do
		# shellcheck disable=SC2086
		for_output /dev/full "No space left on device" $command
		# shellcheck disable=SC2086
		for_output - "Bad file descriptor" $command
	done
	(
		ulimit -f 0
		"$tool" convert one.folded two.pb.gz 2>&1 || echo "status $?"
	) | cat >said
	grep -q 'cannot write two.pb.gz: File too large' said || fail "$(<said)"
	grep -qx 'status 1' said || fail "$(<said)"
	[[ ! -e two.pb.gz ]] || fail "a file is left"
}

# for_output OUTPUT REASON ARGUMENTS...: one line and status 1; - means that no standard descriptor is open but
# that for errors.
for_output() {
	local status=0
	if [[ $1 == - ]]; then
		"$tool" "${@:3}" 2>said <&- >&- || status=$?
	else
		"$tool" "${@:3}" 2>said </dev/null >"$1" || status=$?
	fi
	equal "status of ${*:3} >$1" "$status" 1
	grep -qE "^incstack: cannot write (-|to the standard output)(: $2)?\$" said ||
		fail "${*:3} >$1: $(<said)"
	equal "lines of ${*:3} >$1" "$(grep -c '^incstack: cannot' said)" 1
}

# Files that the tool writes are right although it was started without descriptors.
test_no_descriptors() {
	record one alloc=10
	"$tool" report --folded -o usual one >/dev/null 2>&1
	"$tool" report --folded -o closed one 2>/dev/null <&- >&- || true
	cmp usual.folded closed.folded
	cmp usual.html closed.html
	"$tool" convert one.folded closed.pb.gz <&- >&- 2>&-
	"$tool" convert one.folded usual.pb.gz
	cmp usual.pb.gz closed.pb.gz
	"$tool" heap --folded -o two -- "$target" alloc=10 <&- >&- 2>&-
	"$tool" report --folded -o two two >/dev/null 2>&1
	grep -q alloc_blocks two.folded
	# The program finds them closed, too.
	"$tool" heap --folded -o three -- bash -c 'for i in 0 1 2; do [[ ! -e /proc/$$/fd/$i ]] || exit 1; done' \
		<&- >&- 2>&- || fail "the program has descriptors"
}

# A context with many functions, each of which is called once. The time grows with the depth, not its square.
test_deep_fold() {
	awk 'BEGIN { for (i = 0; i < 200000; i++) printf "%sf%d", i ? ";" : "", i; print " 7" }' >deep.folded
	run 0 convert -r deep.folded again.folded
	cmp deep.folded again.folded
	printf 'a;b;a;b;c 1\na;b;c;a;d 2\nb;a;b 4\n' >small.folded
	run 0 convert -r small.folded again.folded
	equal folded "$(sort again.folded | tr '\n' '|')" 'a;b;c 1|a;d 2|b 4|'
}

"test_$3"
