#!/bin/bash
# SPDX-License-Identifier: MIT
#
# debug_files.sh TOOL TARGET NAME runs the function test_NAME in a new directory: the symbols and the debug
# information of a program are in other files, are damaged, or are missing. TARGET is a C program.
set -euo pipefail
tool=$1 target=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=tests/tool/common.sh
. "$here/common.sh"

# The commands of `inside` run where /usr/lib/debug is a folder of the test.
inside=(unshare -rm sh -c 'mount --bind debug /usr/lib/debug && exec "$@"' sh)

need_inside() {
	mkdir -p debug
	[[ -d /usr/lib/debug ]] && "${inside[@]}" true 2>/dev/null || exit 77
}

record() { "$tool" heap -o trace -- "$@" >stdout 2>stderr </dev/null || fail "status $?"; }

# The report is in `said`.
report() { COLUMNS=300 "$@" "$tool" report trace >said 2>&1 || fail "report: status $?: $(cat said)"; }

# lines WHAT: names and lines are there. none WHAT: they are not.
lines() {
	grep -q ' get  source_target.c:' said || fail "$1: no lines: $(cat said)"
	! grep -q '^warning: .*debug info' said || fail "$1: $(grep '^warning' said)"
}
none() { ! grep -q ' get  source_target.c:' said || fail "$1: there are lines"; }

# told WHAT TEXT: one line of the report has the text.
told() { equal "$1: lines with $2" "$(grep -cF -- "$2" said)" 1; }

# split: ./prog is stripped, and ./prog.debug has what it had.
split() {
	cp "$target" prog
	objcopy --only-keep-debug prog prog.debug
	strip prog
}

build_id() { readelf -n "$1" | sed -n 's/.*Build ID: //p'; }

# place_by_id FILE: as a package with debug information has it.
place_by_id() {
	local id
	id=$(build_id prog)
	mkdir -p "debug/.build-id/${id:0:2}"
	cp "$1" "debug/.build-id/${id:0:2}/${id:2}.debug"
}

test_none() {
	split
	record ./prog
	report
	none "stripped"
	grep -q ' prog+0x[0-9a-f]*$' said || fail "no address: $(cat said)"
}

test_debug_link() {
	split
	objcopy --add-gnu-debuglink=prog.debug prog
	record ./prog
	report
	lines "beside the program"
	mkdir .debug && mv prog.debug .debug
	report
	lines "in .debug"
	rm -r .debug
	report
	none "no file"
}

test_debug_link_below_usr() {
	need_inside
	split
	objcopy --add-gnu-debuglink=prog.debug prog
	mkdir -p "debug$PWD" && mv prog.debug "debug$PWD"
	record ./prog
	report
	none "no file"
	report "${inside[@]}"
	lines "below /usr/lib/debug"
}

test_build_id() {
	need_inside
	split
	place_by_id prog.debug
	rm prog.debug
	record ./prog
	report "${inside[@]}"
	lines "by build-id"
	# The file of the program is not needed, and one of another build does not matter.
	cp "${target}_cpp" prog
	report "${inside[@]}"
	lines "another program"
	! grep -q 'source_target.cpp' said || fail "lines of another build"
	rm prog
	report "${inside[@]}"
	lines "no program"
}

# A file of another build, a cut one and one without sense are each refused, with a line.
test_refused() {
	need_inside
	split
	record ./prog
	local way
	for way in 'cp "${target}_cpp" bad' 'head -c 3000 prog.debug >bad' 'head -c 64 prog.debug >bad' 'echo text >bad'; do
		eval "$way"
		place_by_id bad
		report "${inside[@]}"
		none "$way"
		[[ $way == echo* || $way == *64* ]] || told "$way" "is damaged or of another build"
		grep -q ' prog+0x[0-9a-f]*$' said || fail "no address: $(cat said)"
	done
}

# damage SECTION: ./prog has that section full of bytes without sense.
damage() {
	local bytes
	cp "$target" prog
	objcopy -O binary --only-section="$1" --set-section-flags "$1=alloc" prog section 2>/dev/null
	bytes=$(stat -c %s section)
	[[ $bytes -gt 0 ]] || fail "no $1"
	head -c "$bytes" /dev/zero | tr '\0' "$2" >section
	objcopy --update-section "$1=section" prog
}

test_damaged() {
	local section byte
	for section in .debug_info .debug_abbrev .debug_line; do
		for byte in '\377' '\001' U; do
			damage "$section" "$byte"
			record ./prog
			report
			grep -qE ' places( |$)' said || fail "$section: no names of symbols: $(cat said)"
			equal "$section: warnings" "$(grep -c "^warning: .*$PWD/prog" said)" 1
			told "$section" "the debug information of $PWD/prog is damaged"
		done
	done
}

test_shared() {
	command -v dwz >/dev/null || exit 77
	need_inside
	local id
	split
	place_by_id prog.debug
	cp "${target}_cpp" other && objcopy --only-keep-debug other other.debug
	dwz -m debug/common -M ../../common debug/.build-id/*/*.debug other.debug || exit 77
	readelf -S debug/.build-id/*/*.debug | grep -q gnu_debugaltlink || exit 77
	record ./prog
	report "${inside[@]}"
	lines "with the shared file"
	rm debug/common
	report "${inside[@]}"
	told "without the shared file" "parts of the debug information of $PWD/prog are missing with the file"
	grep -qE ' places  source_target.c:' said || fail "no lines at all: $(cat said)"
}

# serve ID: debuginfod serves ./served on $port until the test ends, and knows the build. The port may be taken, so
# others are tried.
serve() {
	local try
	for try in 1 2 3 4 5; do
		port=$((20000 + RANDOM % 20000))
		debuginfod -d :memory: -p $port -F served >server 2>&1 &
		server=$!
		python3 -B - "http://127.0.0.1:$port/buildid/$1/debuginfo" <<'P' && return
import sys, time, urllib.request
for i in range(300):
    try:
        sys.exit(urllib.request.urlopen(sys.argv[1], timeout=60).status != 200)
    except OSError:
        time.sleep(0.1)
sys.exit(1)
P
		kill -KILL $server 2>/dev/null || true
	done
	exit 77
}

test_debuginfod() {
	command -v debuginfod >/dev/null || exit 77
	local -x DEBUGINFOD_CACHE_PATH=$PWD/cache DEBUGINFOD_URLS='' DEBUGINFOD_TIMEOUT=200 DEBUGINFOD_MAXTIME=200
	split
	mkdir served && mv prog.debug served
	serve "$(build_id prog)"
	record ./prog
	report
	none "not asked"
	DEBUGINFOD_URLS=http://127.0.0.1:$port report
	lines "from debuginfod"
	# A server that does not know the build says so, and is no error.
	rm -rf cache prog
	cp "${target}_cpp" prog && strip prog
	record ./prog
	DEBUGINFOD_URLS=http://127.0.0.1:$port report
	! grep -q 'note: debuginfod' said || fail "an unknown build: $(cat said)"
}

# A server that takes connections and never answers, and one that is not there.
test_debuginfod_hangs() {
	command -v debuginfod >/dev/null || exit 77
	local -x DEBUGINFOD_CACHE_PATH=$PWD/cache DEBUGINFOD_TIMEOUT=1 DEBUGINFOD_MAXTIME=2
	split
	record ./prog
	python3 -B -c '
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
time.sleep(200)' >port &
	server=$!
	until [[ -s port ]]; do sleep 0.1; done
	DEBUGINFOD_URLS=http://127.0.0.1:$(cat port) report
	told "a server that hangs" "incstack: note: debuginfod:"
	grep -q ' prog+0x[0-9a-f]*$' said || fail "no address: $(cat said)"
	kill -KILL $server
	wait $server || true
	rm -rf cache
	DEBUGINFOD_URLS=http://127.0.0.1:$(cat port) report
	told "no server" "incstack: note: debuginfod:"
	grep -q ' prog+0x[0-9a-f]*$' said || fail "no address: $(cat said)"
	server=
}

# Debian's programs have no symbols; the report names the package.
test_package() {
	local id package
	command -v dpkg-query >/dev/null || exit 77
	package=$(dpkg-query -S /usr/bin/sort /bin/sort 2>/dev/null | sed -n '1s/:.*//p' || true)
	[[ -n $package ]] || exit 77
	id=$(build_id /usr/bin/sort)
	[[ ! -e /usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug ]] || exit 77
	seq 100 >numbers
	record /usr/bin/sort numbers
	report
	told "the package" "the Debian package $package-dbgsym has them"
}

scratch=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill -KILL $server 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch"
"test_$3"
