# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What the scripts in programs.toml call. The driver sets IN (the input that `prepare`
# made), SCALE (how much work), SEED (the round), REPORTS (a directory for the
# tool's files), OPTIONS and INCSTACK (the tool; empty for a bare run).
set -u
server=

# run PROGRAM ARGUMENTS...: runs it in the foreground. RUN_AS=USER runs it as that user.
run() {
	find_user
	if [[ -z $INCSTACK ]]; then
		"${user[@]}" "$@"
		return
	fi
	local report=$REPORTS/run.$BASHPID.$RANDOM status=0
	# shellcheck disable=SC2086 # several options
	"${user[@]}" "$INCSTACK" heap $OPTIONS -o "$report.trace" -- "$@" 2>"$report.err" || status=$?
	program_errors "$report.err" >&2
	return "$status"
}

# serve PROGRAM ARGUMENTS...: runs it in the background. $server is the process to wait for.
serve() {
	find_user
	if [[ -z $INCSTACK ]]; then
		"${user[@]}" "$@" 2>server.stderr &
	else
		# shellcheck disable=SC2086
		"${user[@]}" "$INCSTACK" heap $OPTIONS -o "$REPORTS/serve.$RANDOM.trace" -- "$@" \
			2>"$REPORTS/serve.$RANDOM.err" &
	fi
	server=$!
}

# The words before a command that make it run as $RUN_AS, in the array `user`.
find_user() {
	user=()
	if [[ -n ${RUN_AS:-} && $EUID == 0 ]]; then
		user=(setpriv "--reuid=$RUN_AS" "--regid=$RUN_AS" --clear-groups --)
	fi
}

# Prints the process number of the program that serve started. When it has ended, the tool has a child of its
# own, which makes the report.
program() {
	if [[ -z $INCSTACK ]]; then
		echo "$server"
		return
	fi
	local child
	for child in $(pgrep -P "$server"); do
		[[ $(readlink "/proc/$child/exe") == "$INCSTACK" ]] || { echo "$child" && return; }
	done
}

# stop [SIGNAL]: ends the program that serve started, and returns its exit status.
stop() {
	kill "-${1:-TERM}" "$(program)" 2>/dev/null
	wait "$server"
}

# await COMMAND...: repeats the command until it succeeds, for 30 seconds at most.
await() {
	for _ in {1..300}; do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "await: gave up: $*" >&2
	return 1
}

# Prints what the program wrote on its standard error, before the tool's own lines.
program_errors() {
	sed -e '/^incstack: the program took/,$d' -e '/incstack: the program took/{s/incstack: the program took.*//;q;}' "$1"
}
