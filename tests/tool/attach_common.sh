# shellcheck shell=bash disable=SC2154,SC2034,SC2119,SC2120 # variables of the script that sources this one
# SPDX-License-Identifier: MIT
#
# What attach.sh and attach_heap.sh share. $tool is the tool, and $command its command.

# shellcheck source=tests/tool/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

pids=()

# begin COMMAND...: runs it in the background until it has written a line. Its number is in $pid.
begin() {
	: >begun
	"$@" >begun &
	pid=$!
	pids+=("$pid")
	until [[ -s begun ]]; do kill -0 "$pid"; done
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
	timeout 60 "$tool" "$command" "$@" >stdout 2>stderr </dev/null || status=$?
	keep_sums
}

# during COMMAND...: attaches to the command from before it works until it ends; $ended is its status.
during() {
	rm -f go
	begin "$@"
	: >stderr
	timeout 60 "$tool" "$command" -o trace ${interval:+-i "$interval"} -p "$pid" 2>stderr &
	until grep -qE '(sampl|record)ing process' stderr; do
		kill -0 $! 2>/dev/null || {
			forbidden
			fail "the tool has ended"
		}
	done
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
		$(($(tick taken) + $(tick queued) + $(tick failed) + $(tick lost)))
	equal traces "$(value traces)" "$(tick taken)"
	equal "lost traces" "$(value lost)" 0
	((${1:-1} == 0 || $(tick taken) > 0)) || fail "no trace"
}

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

# run_test NAME: calls test_NAME in a new directory, if `allowed` does not skip it. What that has left there is
# removed: a test that waits for a line in stderr must not find the line of an earlier tool.
run_test() {
	scratch=$(mktemp -d)
	readonly scratch
	trap 'kill -KILL "${pids[@]}" 2>/dev/null || true; rm -rf "$scratch"' EXIT
	cd "$scratch" || exit 1
	allowed
	rm -f ./*
	"test_$1"
}
