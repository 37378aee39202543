#!/bin/bash
# SPDX-License-Identifier: MIT
#
# check.sh TEST DIRECTORY [COUNT | PROGRAM N]: one of the tests of the toy VM, with the programs
# that were built into DIRECTORY; COUNT random programs, for those that take a number.
set -euo pipefail
here=$(dirname "$0")
oracle=$2/toyvm_oracle
faulty=$2/toyvm_faulty

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

results() {
	grep -v '^toyvm:' <<<"$1" | sort
}

# A program of programs/ says the same, interpreted under full walks and with everything on.
program() {
	local file=$here/programs/$1.toy n=$2 plain all
	plain=$("$oracle" "$file" --n "$n" --interpreted --mode full)
	all=$("$oracle" "$file" --n "$n")
	diff <(results "$plain") <(results "$all") >&2 ||
		fail "$file: compiled code computes something else"
	diff <(results "$plain") <(results "$("$oracle" "$file" --n "$n" --linked 8)") >&2 ||
		fail "$file: frames on the heap compute something else"
	diff <(results "$plain") <(results "$("$oracle" "$file" --n "$n" --page 1)") >&2 ||
		fail "$file: polls by a page compute something else"
	tail -n 1 <<<"$all"
	"$oracle" "$file" --n 1 --mode validate >/dev/null
}

# TEXT POSITION: a program that must be refused there.
refused() {
	local file says
	file=$(mktemp)
	printf '%s' "$1" >"$file"
	says=$("$oracle" "$file" 2>&1) && fail "accepted: $1"
	rm -f "$file"
	[[ $says == *":$2: "* ]] || fail "expected an error at $2: $says"
}

errors() {
	refused 'def main(n) { return x; }' 1:22
	refused $'def main(n) {\n\treturn 1 +;\n}' 2:12
	refused $'def main(n) {\n return 99999999999;\n}' 2:9
	refused $'def main(n) { return n; }\ndef main(n) { return n; }' 2:5
	refused 'def main(n) { f(1); }' 1:15
	refused 'def f(a) { return a; }' 1:23
	refused $'def main(n) {\n 3 = n;\n}' 2:4
	refused 'class A : B { }' 1:11
	refused $'def main(n) {\n if (n) { return 1; }' 2:22
	refused 'def main(n) { $ }' 1:15
	refused '' 1:1
	refused "def main(n) { return $(printf '(%.0s' {1..200}) }" 1:85
	echo "all refused with line and column"
}

# Arguments that would be cut short or taken for others are refused, every seed is taken.
arguments() {
	local bad seed
	for bad in "--seed -1" "--seed 18446744073709551616" "--programs 0" "--programs -3" \
		"--programs 99999999999999999999" "--threads 65" "--ticks 4294967296" "--n 1e3" \
		"--linked 9" "--distance -1" "--distance 65" "--fuel" "--mode fast" "--what" "one two" "no-such-file"; do
		# shellcheck disable=SC2086 # words
		"$oracle" $bad >/dev/null 2>&1 && fail "accepted: $bad"
	done
	for seed in 0 18446744073709551615 0xdeadbeef00000001 9223372036854775808; do
		"$oracle" --seed "$seed" --programs 1 --fuel 50 >/dev/null || fail "seed $seed"
	done
}

# Every counter of a run is at least one in a thousand samples, the stacks are deep.
random() {
	local last
	last=$("$oracle" --seed 1 --programs 30)
	echo "$last"
	[[ $last == *"on the heap: samples="[1-9]*returns=[1-9]* ]] || fail "no frames on the heap"
	[[ $last == *"iterator: walks="[1-9][0-9][0-9]* ]] || fail "the iterator was not checked"
	[[ $last == *"page: faults="[1-9]* ]] || fail "nobody polled by a page"
	[[ $last == *"limits: refused="[1-9]*no_thunk=[1-9]*no_arm=[1-9]* ]] || fail "no limits"
	last=$(tail -n 1 <<<"$last")
	awk '{
		for (i = 2; i <= NF; i++) { split($i, f, "="); v[f[1]] = f[2] }
		if (v["mismatches"] || v["lost"] || v["depth_p50"] < 20) exit 1
		for (k in v)
			if (k != "mismatches" && k != "lost" && k != "depth_p50" && v[k] * 1000 < v["samples"]) {
				print k " is rare"
				exit 1
			}
	}' <<<"$last" || fail "the run was not what it should be"
}

# Barriers and full walks give the same profile where one thread makes the same run.
modes() {
	local file
	"$oracle" --compare full --threads 1 --seed 21 --programs "$1" || fail "profiles differ"
	"$oracle" --compare validate --threads 1 --seed 21 --programs 2 || fail "profiles differ"
	for file in "$here"/programs/*.toy; do
		[[ $file == *deep.toy ]] && (($1 < 10)) && continue # minutes in a build for debugging
		"$oracle" --compare full --threads 1 --n 1 "$file" | grep comparison: ||
			fail "$file: profiles differ"
	done
	[[ ! -x $faulty ]] || ! "$faulty" --compare full --threads 1 --programs 4 --fault 104 \
		>/dev/null 2>&1 || fail "a gap that is left out was not noticed"
}

# FRAMES: what callgrind counts while the collector's walk goes over a stack that has a
# barrier in every slot.
walked() {
	command valgrind --tool=callgrind --callgrind-out-file=/dev/null \
		--toggle-collect=walk_all "${oracle%/*}/toyvm_walk" "$1" 2>&1 |
		awk '/Collected/ { print $4 }'
}

# Five times the frames, and thunks in a second pool, cost five times the instructions.
walk() {
	local few many
	few=$(walked 2000)
	many=$(walked 10000)
	echo "instructions: 2000 frames $few, 10000 frames $many"
	((few > 2000 && many < 6 * few)) || fail "the walk is not linear"
}

# TRIGGER PROGRAM N: what compilation by that trigger came to, as name=value words.
adapted() {
	"${oracle%/*}/toyvm_adaptive" "$1" 50 "$3" "$here/programs/$2.toy"
}

# The partial tree alone makes compiled code run as soon and as much as counters of calls do, of
# not more methods but for one, and each trigger computes the same.
adaptive() {
	local program n plain counters contexts
	while read -r program n; do
		plain=$(adapted nothing "$program" "$n")
		counters=$(adapted counters "$program" "$n")
		contexts=$(adapted contexts "$program" "$n")
		printf '%s\n' "$program" "$counters" "$(adapted methods "$program" "$n")" "$contexts"
		awk -v RS='[ \n]' -F= '
			$1 == "trigger" { t = $2 }
			NF == 2 { v[t, $1] = $2 }
			END {
				exit !(v["nothing", "result"] == v["contexts", "result"] &&
					v["nothing", "result"] == v["counters", "result"] &&
					v["nothing", "compiled"] == 0 && v["nothing", "in_compiled"] == 0 &&
					v["contexts", "compiled"] <= v["counters", "compiled"] + 1 &&
					v["contexts", "peak"] < v["contexts", "looks"] / 10 &&
					v["contexts", "in_compiled"] > 0.9)
			}' <<<"$plain $counters $contexts" || fail "$program: the tree chose badly"
	done <<-END
		richards 20
		deltablue 20
		nbody 40
		parser 20
	END
}

# perf and gdb, where they are and may trace, know the compiled methods by their names.
listed() {
	local run=("$oracle" --list --threads 1 --mode full "$here/programs/nbody.toy") text n
	folder=$(mktemp -d)
	trap 'rm -rf "$folder" $map' EXIT # runs when locals are gone
	"${run[@]}" --n 2 >/dev/null &
	map=/tmp/perf-$!.map
	wait $!
	grep -q ' attract$' "$map" || fail "no method is in $map"
	if perf record -q -e cpu-clock -o "$folder/data" true >/dev/null 2>&1; then
		# A short run may have no sample in compiled code.
		for n in 60 600 6000; do
			perf record -q -e cpu-clock -o "$folder/data" "${run[@]}" --n "$n" --ticks 1000000 \
				>/dev/null 2>&1
			text=$(perf report -i "$folder/data" --stdio -s dso,symbol 2>/dev/null)
			map+=" $(grep -oE 'tid +[0-9]+' <<<"$text" | awk '{ print "/tmp/perf-" $2 ".map" }' | sort -u)"
			grep -E 'JIT.* (attract|square|root|body|advance|main) ' <<<"$text" && break
		done
		grep -qE 'JIT.* (attract|square|root|body|advance|main) ' <<<"$text" || fail "perf says: $text"
	fi
	gdb -nx -batch -ex run --args true 2>&1 | grep -q 'exited normally' || return 0
	text=$(gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'break toy_poll' -ex run \
		-ex 'info inferiors' -ex 'info symbol f->pc' -ex kill \
		--args "${run[@]}" --n 4 2>&1)
	map+=" /tmp/perf-$(grep -oE 'process [0-9]+' <<<"$text" | awk 'NR == 1 { print $2 }').map"
	grep -E '^[a-z]+ \+ [0-9]+ in section' <<<"$text" || fail "gdb says: $text"
}

# Ten million samples.
soak() {
	local seed sum=0 last
	for seed in 11 12 13 14 15 16; do
		last=$("$oracle" --seed "$seed" --programs 100) || fail "seed $seed: $last"
		last=$(tail -n 1 <<<"$last")
		echo "$last"
		last=${last#*samples=}
		sum=$((sum + ${last%% *}))
	done
	((sum >= 10000000)) || fail "only $sum samples"
}

# Every legal event at every poll.
hostile() {
	"$oracle" --seed 3 --programs "$1" --hostile || fail "see above"
}

# signals_had_all OUTPUT: whether the runs had every kind of event that the test is about.
signals_had_all() {
	awk '{
		for (i = 1; i <= NF; i++)
			if (split($i, f, "=") == 2) v[f[1]] += f[2]
	} END {
		exit !(v["barriers"] > 0 && v["immediate"] > 20 && v["queued"] > 10000 && v["biased"] > 100 &&
			v["later"] * 4 < v["biased"] && v["unknown"] < v["queued"] / 2)
	}' < <(grep -E '^toyvm: (vanished|signals):? ' <<<"$1")
}

# Signals at random instants: every trace is exact, or begins with a caller and is marked. When a signal
# comes is chance, so a run may lack an event, most often an unannounced exit below a barrier.
# Then there is another run. Three bugs, of the embedder and of the core, are found.
signals() {
	local all='' last
	for _ in {1..6}; do
		last=$("$oracle" --signals 20 --fuel 300 --seed 9 --programs "$1") || fail "$last"
		echo "$last"
		all+=$last$'\n'
		! signals_had_all "$all" || break
	done
	signals_had_all "$all" || fail "the runs had not every kind of event"
	[[ -x $faulty ]] || return 0
	found BUG_END_PROMISED "$(number_of BUG_END_PROMISED)" 1 "--signals 20 --fuel 300" ||
		fail "a broken promise was not found"
	found FAULT_QUEUED_AT_POLL "$(number_of FAULT_QUEUED_AT_POLL)" 1 "--signals 20 --fuel 300" ||
		fail "the position of the poll was taken for that of the signal"
	found FAULT_CALLER_AT_POLL "$(number_of FAULT_CALLER_AT_POLL)" 1 "--signals 20 --fuel 300" ||
		fail "the caller's position at the poll was taken for that of the signal"
}

# LAYER NAME ARGUMENTS: runs the oracle, and says how many traces the layer has compared. Zero fail.
layer() {
	local says
	# shellcheck disable=SC2086 # words
	says=$("$oracle" $3) || fail "$1: $says"
	says=$(grep -oE "\b$2=[0-9]+" <<<"$says" | head -n 1)
	echo "$1: compared ${says#*=}"
	((${says#*=} > 0)) || fail "$1: nothing was compared"
}

# LAYER FAULT ARGUMENTS: the layer finds the bug; those below it, in the following ARGUMENTS, do not.
only() {
	local number below
	number=$(number_of "$2")
	found "$1: $2" "$number" 1 "$3" || fail "$1 does not find $2"
	shift 3
	for below in "$@"; do
		# shellcheck disable=SC2086 # words
		"$faulty" --seed 5 --programs 4 --threads 1 --fault "$number" $below >/dev/null 2>&1 ||
			fail "a layer below finds $2, too: $below"
	done
}

# Each layer is checked against the one below it: the VM's own record, full walks at polls, incremental
# traces at polls, and those of signals. Each has a bug that it finds and that does not show below it.
layers() {
	local full="--mode full --fuel 300 --programs 4" both="--compare full --fuel 300 --programs 4"
	local signals="--signals 20 --fuel 300"
	layer "full walks at polls" samples "--seed 31 --threads 1 $full"
	layer "incremental at polls" samples "--seed 31 --threads 1 $both"
	layer "by signals, in the handler" immediate "--seed 9 --programs 6 --threads 1 $signals"
	layer "by signals, from the queue" queued "--seed 9 --programs 6 --threads 1 $signals"
	[[ -x $faulty ]] || return 0
	only "full walks at polls" BUG_NEXT_CALL "$full"
	only "incremental at polls" FAULT_GAP_FORGOTTEN "$both" "$full"
	only "by signals" FAULT_QUEUED_AT_POLL "$signals" "$full" "$both"
}

# Stacks lie further from each other than that: what is more is a switch of stacks.
memcheck() {
	command valgrind -q --error-exitcode=9 --max-stackframe=65536 --leak-check=full \
		--errors-for-leak-kinds=definite \
		--suppressions="$here/memcheck.supp" "$@"
}

# Memcheck on everything, and on bugs that it must see. It understands our unwind information.
valgrind() {
	local slip says
	memcheck "$oracle" --seed 3 --programs 12 --fuel 100 || fail "see above"
	memcheck "$oracle" --seed 5 --programs 3 --fuel 60 --hostile --threads 3 || fail "see above"
	says=$(memcheck "$oracle" "$here/programs/producer.toy" --n 1 --page 1 2>&1) || fail "$says"
	[[ $says != *"CFI reader"* ]] || fail "cannot read the unwind information: $says"
	for slip in "51 uninitialised" "52 free'd" "53 Invalid read"; do
		says=$(ulimit -c 0; memcheck "$faulty" --seed 3 --programs 4 --fuel 100 --linked 0 \
			--fault "${slip%% *}" 2>&1) || true
		[[ $says == *"${slip#* }"* ]] || fail "not found: $slip"
	done
}

# The inputs that the fuzz target is to remember.
corpus() {
	"${oracle%/*}/toyvm_corpus" "$here"/fuzz/corpus/* || fail "see above"
}

# FAULT NUMBER THREADS ARGUMENTS: says how the bug showed itself, or fails.
found() {
	local status=0 says
	# shellcheck disable=SC2086 # words
	says=$(ulimit -c 0; timeout 60 "$faulty" --seed 5 --programs 30 --threads "$3" --fault "$2" $4 2>/dev/null) ||
		status=$?
	case $status in
	1) echo "$1: $(grep -o 'mismatches=[0-9]*' <<<"$says")" ;;
	124) echo "$1: the VM hangs" ;;
	132 | 134 | 135 | 139) echo "$1: the VM crashed" ;;
	*) return 1 ;;
	esac
}

# Without a bug nothing is found; each bug is, within so many programs, by one
# thread or, where it takes two, by two.
faults() {
	local fault number
	timeout 60 "$faulty" --seed 5 --programs 30 || fail "found something where there is no bug"
	grep -ohE '^	(BUG|FAULT)_[A-Z_]+' "$here/faults.h" "$here/../../src/trace/fault.h" | while read -r fault; do
		number=$(number_of "$fault")
		found "$fault" "$number" 1 "" || found "$fault" "$number" 2 "" ||
			found "$fault" "$number" 1 "--signals 20 --fuel 300" ||
			found "$fault" "$number" 1 "--instrument 2 --fuel 1000" || fail "$fault was not found"
	done
}

# Call subgraphs are instrumented while random programs run: each context has as many calls as the
# VM's own record, by every scheme, also when roots come and go.
instrument() {
	local scheme last
	for scheme in 1 2 3; do
		last=$("$oracle" --instrument "$scheme" --seed "$scheme" --programs "$1") || fail "scheme $scheme"
		grep instrumentation: <<<"$last"
		[[ $last == *"calls="[1-9]*"changes="[1-9]* ]] || fail "no calls"
		"$oracle" --instrument "$scheme" --seed 7 --programs "$1" --threads 1 >/dev/null ||
			fail "scheme $scheme with one thread"
	done
}

# The value of an enumerator: the enums start at 1 and 101.
number_of() {
	local file=$here/faults.h start=1
	[[ $1 == FAULT_* ]] && file=$here/../../src/trace/fault.h start=101
	grep -oE '^	(BUG|FAULT)_[A-Z_]+' "$file" | tr -d '\t' | grep -nx "$1" |
		awk -F: -v start=$start '{ print $1 + start - 1 }'
}

"$1" "${@:3}"
