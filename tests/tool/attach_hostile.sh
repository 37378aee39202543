#!/bin/bash
# SPDX-License-Identifier: MIT
#
# attach_hostile.sh TOOL TARGET NAME runs the function test_NAME in a new directory. TARGET is a process that
# wants to harm the tool; see attach_hostile.c. Where the kernel allows no samples, the tests are skipped (77).
set -euo pipefail
tool=$1 target=$2 command=cpu

# shellcheck source=tests/tool/attach_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/attach_common.sh"

# make_object FILE ADDRESS SIZE MEMORY: an object whose second segment has this address, size in the file and
# size in memory. No loader would take it, but a process can map it.
make_object() {
	python3 - "$@" <<'END'
import struct, sys

def segment(flags, offset, address, size, memory):
    return struct.pack("<IIQQQQQQ", 1, flags, offset, address, address, size, memory, 4096)

address, size, memory = (int(word, 0) % 2**64 for word in sys.argv[2:])
header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
body = header + segment(5, 0, 0, 4096, 4096) + segment(4, 4096, address, size, memory)
with open(sys.argv[1], "wb") as file:
    file.write(body.ljust(4096, b"\0") + b"A" * min(size, 1 << 20))
END
}

# A segment that wraps around, for each distance at which something of the tool may be; and sizes that no
# file has.
test_segments() {
	local distance
	for distance in 0x1000 0x1a000 0x209000 0x20b000 0x400000; do
		make_object evil "-$distance" 0x2000 "$((distance + 0x800))"
		begin "$target" map ./evil
		attach_while 10
		adds_up
		kill -KILL "$pid"
	done
	make_object evil 0x1000 0x7fffffffffffffff -1
	begin "$target" map ./evil
	attach_while 10
	adds_up
	make_object evil 0x300000000 0x1000 0x1000
	begin "$target" map ./evil
	attach_while 10
	adds_up
}

# The end of a segment's code in its file, as a number of whole pages.
end_of_code() {
	readelf -lW "$1" | awk '/ R E /{ print $2, $5 }' | {
		read -r offset size
		echo $(((offset + size + 4095) / 4096 * 4096))
	}
}

# The file of code that runs becomes shorter than it was, and so does the unwind table.
test_shortened() {
	cp "$(dirname "$target")/attach_first.so" library.so
	begin "$target" shorten ./library.so "$(end_of_code library.so)"
	begin_tool
	kill -USR1 "$pid"
	uses 20
	kill -TERM $!
	status=0
	wait $! || status=$?
	keep_sums
	adds_up
	equal "other contexts" "$(spent .)" "$(spent ';spin ')"
}

# What reads the process has no rights: it is another user, in other namespaces, with a filter of system calls.
test_jailed() {
	local worker word
	make_object harmless 0x1000 0x1000 0x1000
	begin "$target" map ./harmless
	begin_tool
	worker=$(worker_of $!)
	cat "/proc/$worker/status" >status
	for word in NoNewPrivs:1 Seccomp:2 CapEff:0000000000000000 CapBnd:0000000000000000; do
		grep -q "^${word%:*}:.${word#*:}$" status || fail "not $word: $(cat status)"
	done
	if ((UID == 0)); then
		grep -qE '^Uid:.65534.65534.65534.65534$' status || fail "it is still root"
		grep -qE '^Groups:[[:space:]]*$' status || fail "it has groups"
		[[ $(readlink "/proc/$worker/ns/net") != $(readlink /proc/self/ns/net) ]] || fail "it has the network"
	fi
	! readlink "/proc/$worker/fd"/* | grep -E '/mem$|/maps$|/proc/' || fail "it holds on to files of the process"
	kill -TERM $!
	wait $! || fail "exit status $?"
	# The end of the worker ends the tool, with one line.
	begin_tool
	kill -SEGV "$(worker_of $!)"
	status=0
	wait $! || status=$?
	equal status "$status" 126
	grep -q 'the reader of the process was ended by signal 11' stderr || fail "does not say why"
	kill -0 "$pid" || fail "the program has ended"
}

allowed() {
	make_object harmless 0x1000 0x1000 0x1000
	begin "$target" map ./harmless
	attach -o probe -d 0.1 -p "$pid"
	! grep -q 'perf_event_open' stderr || exit 77
	kill "$pid"
}

run_test "$3"
