#!/bin/bash
# SPDX-License-Identifier: MIT
#
# changed.sh TOOL TARGET NAME runs the function test_NAME in a new directory. The file of a program or of a
# library changes between the recording and the report: then its functions have no names, and a line says why.
# TARGET is the first build; TARGET_second, TARGET_plain and so on are others; see changed_target.c.
set -euo pipefail
tool=$1 target=$2 command=cpu

# shellcheck source=tests/tool/attach_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/attach_common.sh"
allowed() { :; }

# record COMMAND ARGUMENTS...
record() {
	"$tool" "$1" --folded -o trace "${@:2}" >stdout 2>stderr </dev/null || fail "status $?"
	names_in trace.folded || fail "no names at first"
	! grep -q '^warning: /' stderr || fail "a warning at first"
}

names_in() { grep -q ';right ' "$1"; }

report() { "${in[@]}" "$tool" report --folded trace >said 2>&1 || fail "report: status $?"; }

# noticed WHAT FILE: the report has neither name, and one line that names the file.
noticed() {
	report
	! grep -qE ';(right|wrong) ' trace.folded || fail "$1: a name is taken from the changed file"
	equal "$1: lines" "$(grep -c "^warning: $PWD/$2.* so its functions are shown as addresses" said)" 1
	grep -qE ";$2\+0x[0-9a-f]+ " trace.folded || fail "$1: no address"
	"${in[@]}" "$tool" convert trace converted.folded 2>said || fail "convert: status $?"
	grep -q "$PWD/$2" said || fail "$1: convert says nothing"
	! grep -qE ';(right|wrong) ' converted.folded || fail "$1: a name in what is converted"
}

# kept WHAT: the names are still those of the recording.
kept() {
	report
	names_in trace.folded || fail "$1: no names"
	equal "$1: heaviest" "$(sort -k2 -n -t ' ' trace.folded | tail -n 1 | grep -c ';right ')" 1
	! grep -q '^warning: /' said || fail "$1: a warning"
}

# change WHAT COMMAND...: changes ./prog so, looks at the report, and puts ./prog back.
change() {
	rm -rf prog
	cp -p pristine prog
	"${@:2}"
	noticed "$1" prog
}

same_size_and_time() {
	cp "$second" prog
	truncate -s "$(stat -c %s pristine)" prog
	touch -r pristine prog
}

byte() { printf "$2" | dd of=prog bs=1 seek="$1" conv=notrunc status=none; }

# all_ways: what can happen to the file of a program; $second is its second build.
all_ways() {
	change "overwritten" cp "$second" prog
	upgrade() { cp "$second" new && mv new prog; }
	change "upgraded" upgrade
	change "deleted" rm prog
	fifo() { rm prog && mkfifo prog; }
	change "a FIFO" fifo
	directory() { rm prog && mkdir prog; }
	change "a directory" directory
	ring() { rm prog && ln -s prog prog; }
	change "a link to itself" ring
	change "cut off" truncate -s -100 prog
	change "cut to a page" truncate -s 4096 prog
	change "empty" truncate -s 0 prog
	change "another architecture" byte 18 '\xb7'
	change "another class" byte 4 '\x01'
	change "a hard link to another file" ln -f "$second" prog
	change "a symbolic link to another file" ln -sf "$second" prog
	change "same size and time" same_size_and_time
	text() { echo 'some text' >prog; }
	change "no program" text
	if ((EUID != 0)); then change "not readable" chmod 000 prog; fi
	rm -rf prog
	cp -p pristine prog
	kept "put back"
	touch prog
	kept "touched"
	cp -p prog other && ln -f other prog
	kept "linked"
}

test_program() {
	local in=() second=./second
	cp "$target" pristine && cp -p pristine prog && cp "${target}_second" second
	record heap -- ./prog work 1
	all_ways
	strip prog
	# Its functions are exported.
	kept "stripped"
}

test_program_without_build_id() {
	local in=() second=./second
	cp "${target}_plain" pristine && cp -p pristine prog && cp "${target}_plain_second" second
	record heap -- ./prog work 1
	all_ways
	strip prog
	kept "stripped"
}

# Some makers give all builds one build-id.
test_fixed_build_id() {
	local in=()
	cp "$target" prog
	record heap -- ./prog work 1
	objcopy -O binary --only-section=.note.gnu.build-id prog id
	objcopy --update-section .note.gnu.build-id=id "${target}_second" new
	touch -r prog new # as cp -p does
	mv new prog
	report
	equal "lines" "$(grep -c "^warning: the file $PWD/prog was replaced or changed after the recording, but has" said)" 1
}

# A link to the file, as perf makes, does not change it.
test_linked() {
	local in=()
	cp "$target" prog
	record heap -- ./prog work 1
	[[ $(stat -c %W prog) != 0 ]] || exit 77 # the file system does not know when a file was made
	ln prog other
	mv prog moved && mv moved prog
	report
	! grep -q '^warning: ' said || fail "$(cat said)"
}

# A stripped program leads to the symbols of another build, with the right checksum. Its own exported names
# are right.
test_symbols_of_another_build() {
	local in=()
	cp "$target" prog
	strip prog
	objcopy --only-keep-debug "${target}_second" prog.debug
	objcopy --add-gnu-debuglink=prog.debug prog
	"$tool" heap --folded -o trace -- ./prog work 1 >stdout 2>stderr </dev/null || fail "status $?"
	equal "bytes of right" "$(awk '/;right [0-9]+$/ { sum += $NF } END { print sum }' trace.folded)" 100000
}

# In another mount namespace the path is another file.
test_other_namespace() {
	local in=(unshare -rm sh -c 'mount --bind second prog && exec "$@"' sh)
	"${in[@]:0:2}" true 2>/dev/null || exit 77
	cp "$target" prog && cp "${target}_second" second
	in=() record heap -- ./prog work 1
	noticed "a bind mount" prog
	mkdir lower upper work
	cp second upper/prog
	in=(unshare -rm sh -c "mount -t overlay -o lowerdir=\$PWD,upperdir=\$PWD/upper,workdir=\$PWD/work overlay \$PWD &&
		cd \$PWD && exec \"\$@\"" sh)
	"${in[@]}" true 2>/dev/null || return 0
	noticed "an overlay" prog
}

test_library() {
	local in=() kind
	for kind in '' _plain; do
		cp "$target" prog
		cp "${target}${kind}_library" first.so
		cp "${target}${kind}_library" same.so
		cp "${target}${kind}_library_second" second.so
		ln -sf first.so link.so
		record heap -- ./prog plugin "$PWD/link.so" "$PWD/same.so"
		kept "the same library"
		cp first.so link.so.new && mv link.so.new link.so
		kept "a file for a link"
		ln -sf second.so link.so
		noticed "a link that was switched" link.so
		rm link.so
		noticed "a library that was deleted" link.so
	done
}

# Two builds at one place, one after the other: each has its own names, and only the second has a file.
test_library_replaced_while_it_runs() {
	local in=() kind
	for kind in '' _plain; do
		cp "$target" prog
		cp "${target}${kind}_library" plugin.so
		cp "${target}${kind}_library_second" second.so
		"$tool" heap --folded -o trace -- ./prog plugin "$PWD/plugin.so" "$PWD/second.so" >stdout 2>stderr ||
			fail "status $?"
		equal "lines" "$(grep -c "^warning: $PWD/plugin.so is not the build" stderr)" 1
		# Each build allocates 100000 bytes there, half of them in the second.
		equal "bytes of the second build" \
			"$(awk '/;right [0-9]+$/ { sum += $NF } END { print sum }' trace.folded)" 100000
		equal "bytes of the first build" \
			"$(awk '/;plugin.so\+0x[0-9a-f]+ [0-9]+$/ { sum += $NF } END { print sum }' trace.folded)" \
			101000
	done
}

# The program cuts off a library that it has loaded. Pages of the library's tables are gone then, and whoever
# reads them dies.
test_library_cut_off_while_it_runs() {
	local in=() bytes kind other
	cp "$target" prog
	cp "${target}_library" other.so
	for bytes in 0 4096 8192 12288; do
		for kind in heap cpu; do
			for other in '' "$PWD/other.so"; do
				cp "${target}_library" plugin.so
				./prog cut "$PWD/plugin.so" "$bytes" $other || fail "status $? without the recorder"
				cp "${target}_library" plugin.so
				"$tool" "$kind" --folded -o trace -- ./prog cut "$PWD/plugin.so" "$bytes" $other \
					>stdout 2>stderr || fail "$kind, cut to $bytes, then ${other:-nothing}: status $?"
				[[ $kind == cpu || -z $other ]] || names_in trace.folded ||
					fail "cut to $bytes: no names of the other library"
			done
		done
	done
}

test_replaced_while_it_runs() {
	local in=()
	cp "$target" prog && cp "${target}_second" second
	"$tool" heap --folded -o trace -- sh -c 'exec 3<prog; cp second new; mv new prog; exec /proc/self/fd/3 work 1' \
		>stdout 2>stderr </dev/null || fail "status $?"
	! grep -qE ';(right|wrong) ' trace.folded || fail "a name is taken from the new file"
	grep -q "^warning: $PWD/prog.* so its functions are shown as addresses" stderr || fail "no warning"
}

test_cpu() {
	local in=() wall
	for wall in '' --wall; do
		cp "$target" pristine
		cp "$target" prog
		record cpu $wall -- ./prog burn 300
		cp "${target}_second" prog
		noticed "cpu $wall" prog
	done
}

# With -p the recorded file is the one that the kernel has mapped.
attach_and_change() {
	local in=()
	cp "$target" prog
	begin ./prog spin
	begin_tool "$@"
	uses 20
	kill -TERM $!
	wait $! || fail "status $?"
	names_in trace.folded || fail "no names at first"
	kept "$command $*"
	cp "${target}_second" new && mv new prog
	noticed "$command $*" prog
	# Of a file that was replaced before, names come from the file that runs, or are missing.
	begin_tool "$@" -o before
	uses 20
	kill -TERM $!
	wait $! || fail "status $?"
	! grep -qE ';wrong ' before.folded || [[ $(heaviest before.folded) == right ]] ||
		fail "wrong names of a file that was replaced before"
	kill -KILL "$pid"
}

heaviest() { sort -k2 -n -t ' ' "$1" | tail -n 1 | sed 's/.*;\(.*\) .*/\1/'; }

test_attached_cpu() { attach_and_change; }
test_attached_wall() { attach_and_change --wall; }
test_attached_heap() {
	command=heap
	attach_and_change
}

run_test "$3"
