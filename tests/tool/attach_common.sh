# shellcheck shell=bash disable=SC2154,SC2034,SC2119,SC2120 # variables of the script that sources this one
# SPDX-License-Identifier: MIT
#
# What attach.sh, attach_heap.sh, attach_wall.sh and jit.sh share. $tool is the tool, and $command its command.

# shellcheck source=tests/tool/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

others=() # processes that are no children of the test, to be killed at its end
limit=280 # seconds, after which a tool that does not end is ended
as=()     # what runs the tool as another user

# begin COMMAND...: runs it in the background until it has written a line. Its number is in $pid.
begin() {
	: >begun
	"$@" >begun &
	pid=$!
	until [[ -s begun ]]; do
		kill -0 "$pid"
		sleep 0.01
	done
}

# Skips the test if the kernel forbids what the tool needs, as in some containers.
forbidden() {
	! grep -E 'perf_event_open|CONFIG_UPROBES|CAP_SYS_ADMIN' stderr || exit 77
}

# spent_ms REGEX: milliseconds in the contexts that match.
spent_ms() { echo $(($(spent "$1") / 1000000)); }

# attach ARGUMENTS...: incstack $command -p, whatever its exit status, which is in $status.
attach() {
	status=0
	timeout "$limit" "$tool" "$command" --folded "$@" >stdout 2>stderr </dev/null || status=$?
	keep_sums
}

# attached TOOL [FILE]: waits until the tool of that number says in the file that it has begun.
attached() {
	until grep -qE '(sampl|record)ing process' "${2:-stderr}"; do
		kill -0 "$1" 2>/dev/null || {
			forbidden
			fail "the tool has ended"
		}
		sleep 0.01
	done
}

# CPU time of the process in ticks of 10 ms.
used() { sed 's/.*) //' "/proc/$pid/stat" | awk '{ print $12 + $13 }'; }

# uses TICKS: waits until the process has used so much more CPU time. On a busy machine nobody knows how long
# that takes.
uses() {
	local before
	before=$(used)
	until (($(used) - before >= $1)); do sleep 0.02; done
}

# begin_tool ARGUMENTS...: attaches to the process $pid in the background, and waits until the tool has begun.
# Its number is in $!.
begin_tool() {
	: >stderr # of the time before
	"${as[@]}" "$tool" "$command" --folded -o trace "$@" -p "$pid" >stdout 2>stderr </dev/null &
	attached $!
}

# attach_while TICKS ARGUMENTS...: attaches to the process $pid while it uses so much CPU time.
attach_while() {
	begin_tool "${@:2}"
	uses "$1"
	kill -TERM $!
	status=0
	wait $! || status=$?
	keep_sums
}

# during COMMAND...: attaches to the command from before it works until it ends; $ended is its status.
during() {
	rm -f go
	begin "$@"
	: >stderr
	timeout "$limit" "$tool" "$command" --folded -o trace ${interval:+-i "$interval"} -p "$pid" 2>stderr &
	attached $!
	: >go
	status=0 ended=0
	wait $! || status=$?
	wait "$pid" || ended=$?
	keep_sums
	grep -q "process $pid has ${become:-ended}" stderr || fail "does not say how it ended"
	adds_up
}

adds_up() {
	equal status "$status" 0
	equal expected "$(tick expected)" \
		$(($(tick taken) + $(tick queued) + $(tick failed) + $(tick merged)))
	equal traces "$(value traces)" "$(tick taken)"
	equal "lost traces" "$(value lost)" 0
	((${1:-1} == 0 || $(tick taken) > 0)) || fail "no trace"
}

# The process of the tool that reads the other process.
worker_of() { pgrep -P "$1" -x incstack; }

# What a process has that an attached tool could leave or change.
state_of() {
	cat "/proc/$1/maps" "/proc/$1/timers"
	find "/proc/$1/fd" "/proc/$1/task" -maxdepth 1 -printf '%p %l\n' | sort
	grep -E '^(TracerPid|FDSize|Threads|(Sig|Shd)Pnd|Sig[BIC]|Seccomp|VmData|VmStk)' \
		"/proc/$1/status"
}

# refuses STATUS TEXT ARGUMENTS...: one line with the text, and nothing is written.
refuses() {
	local expected=$1 text=$2
	shift 2
	attach -o refused "$@"
	equal "status of $*" "$status" "$expected"
	grep -q -- "$text" stderr || fail "'$*' does not say '$text'"
	equal "lines of $*" "$(wc -l <stderr)" 1
	[[ ! -e refused ]] || fail "a file was made for $*"
}

# Closes what was open before the test: state_of() shows the names of these files, which others may change.
close_others() {
	local fd
	for fd in "/proc/$$/fd"/*; do
		fd=${fd##*/}
		((fd <= 2 || fd == 255)) || exec {fd}>&- # 255: this script
	done
}

# run_test NAME: calls test_NAME in a new directory, if `allowed` does not skip it. What that has left there is
# removed: a test that waits for a line in stderr must not find the line of an earlier tool.
run_test() {
	scratch=$(mktemp -d)
	readonly scratch
	close_others
	# The jobs that still run are asked for now: another process may have the number of one that has ended.
	# shellcheck disable=SC2046 # words
	trap 'kill -KILL "${others[@]}" $(jobs -rp) 2>/dev/null || true; rm -rf "$scratch"' EXIT
	cd "$scratch" || exit 1
	allowed
	rm -f ./*
	"test_$1"
}
