#!/bin/bash
# SPDX-License-Identifier: MIT
#
# hostile.sh TOOL TARGET NAME runs the function test_NAME in a new directory: names, files and processes that
# somebody has made to harm the user of the tool.
set -euo pipefail
tool=$1 target=$2

# shellcheck source=tests/tool/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# run SUBCOMMAND ARGUMENTS...: whatever its exit status, which is in $status; 124 if it does not end. What it
# prints is also appended to the file `printed`.
run() {
	status=0
	timeout 120 "$tool" "$@" >stdout 2>stderr </dev/null || status=$?
	cat stdout stderr >>printed
}

# Fails if the runs since the last call printed something that a terminal obeys, or that reorders text. Lines
# end in line feeds only.
harmless() {
	python3 -B - printed <<'P' || fail "$*: not harmless"
import sys
for name in sys.argv[1:]:
    text = open(name, "rb").read().decode("utf-8")  # fails if it is none
    for c in text.replace("\n", ""):
        if ord(c) < 32 or 0x7f <= ord(c) < 0xa0 or ord(c) in (0x61c, 0x200e, 0x200f) or \
                0x2028 <= ord(c) <= 0x202e or 0x2066 <= ord(c) <= 0x2069:
            sys.exit(f"{name}: {c!r} in {text!r}")
P
	rm printed
}

names=($'\e]0;PWN\a' $'\e[31mred' $'\xc2\x9b31m' $'\x9b31m' $'a\u202eb' $'a\u2066b' $'a\u200eb\u061c' $'\u2028x\u2029'
	$'\xff\xfe' $'\xc3' $'\xed\xa0\x80' $'a\rb' $'a\bb' $'a\vb\f' $'\x7f' $'\x0e\x0f' $'\xc2\x90q' $'\e' $'%s%n' $'\e\\')

# The symbol, the program, its arguments, its thread and the files.
test_names_of_programs() {
	local name
	printf '%s\n' '#include <stdlib.h>' '#include <sys/prctl.h>' 'void *volatile s;' \
		'__attribute__((noinline)) void evilXXXXXXXXXX(void) { for (int i = 0; i < 100; i++) s = malloc(50); }' \
		'int main(int c, char **v) { prctl(PR_SET_NAME, c > 1 ? v[1] : ""); evilXXXXXXXXXX();' \
		'for (volatile long i = 0; i < 100000000; i++); return 0; }' | cc -O1 -x c - -o plain
	for name in "${names[@]}"; do
		python3 -B - "$name" <<'P'
import os, sys
name = os.fsencode(sys.argv[1])
data = open("plain", "rb").read()
open("evil", "wb").write(data.replace(b"evilXXXXXXXXXX", name + b"X" * (14 - len(name))))
P
		chmod +x evil
		mkdir -p "d$name"
		mv evil "d$name/evil$name"
		run heap -o "d$name/t$name" --threads -- "./d$name/evil$name" "$name"
		equal "status with $name" "$status" 0
		grep -q 'X.*100 ' stderr || grep -q '100 .*X' stderr || fail "the symbol is not named"
		run report "d$name/t$name" -o copy
		equal "status with $name" "$status" 0
		run report "d$name/t$name.folded"
		run report "d$name/none$name"
		run "cp$name"
		harmless "$name"
	done
	run cpu --threads -o t -- "./d${names[0]}/evil${names[0]}" "${names[1]}"
	equal status "$status" 0
	harmless cpu
}

# In profiles of each format, as frames, kinds and programs.
test_names_in_profiles() {
	local file
	python3 -B - "${names[@]}" <<'P'
import json, os, sys
for i, name in enumerate(os.fsencode(n) for n in sys.argv[1:]):
    with open(f"{i}.folded", "wb") as file:
        file.write(b"main;" + name.replace(b";", b"").replace(b"\n", b"") + b";leaf 2\n")
    text = name.decode("utf-8", "replace")
    with open(f"{i}.speedscope.json", "w") as file:
        json.dump({"shared": {"frames": [{"name": text}, {"name": text + "\0" + text}]}, "exporter": text,
                   "name": text, "profiles": [{"type": "sampled", "name": text, "unit": "none",
                   "startValue": 0, "endValue": 1, "samples": [[0], [0, 1]], "weights": [3, 4]}]}, file)
P
	for file in *.folded *.speedscope.json; do
		run report "$file"
		run report -k "${names[0]}" "$file"
		run compare "$file" 0.folded
		for format in html pb.gz firefox.json; do
			run convert "$file" "out.$format"
		done
		run report out.pb.gz
		run convert "$file" "out$file.html"
		harmless "$file"
	done
}

# pipe, device, folder and links in place of FILE
odd_files() {
	mkfifo pipe
	mkdir folder
	ln -s /dev/zero device
	ln -s pipe to_pipe
	ln -s nowhere dangling
	ln -s round round
}

# A module of the trace is no file any more when the report is made.
test_modules_that_are_no_files() {
	local kind
	odd_files
	cp "$target" program
	run heap -o trace -- ./program alloc=10
	equal status "$status" 0
	for kind in pipe folder device to_pipe dangling round; do
		rm -f program
		ln -s $kind program
		run report trace
		((status != 124)) || fail "$kind: waits"
		equal "status with $kind" "$status" 0
		rm program
		[[ $kind != pipe ]] || { mkfifo program && run report trace; }
		((status != 124)) || fail "$kind: waits"
	done
}

# In place of the trace file, and of FILE.live.
test_traces_that_are_no_files() {
	local kind
	odd_files
	for kind in pipe folder device to_pipe dangling round; do
		run report $kind -o out
		equal "status with $kind" "$status" 1
		equal "lines with $kind" "$(wc -l <stderr)" 1
		run convert $kind out.folded
		((status != 124)) || fail "$kind: waits"
		run heap -o $kind -- "$target"
		equal "status with $kind" "$status" 126
		equal "lines with $kind" "$(wc -l <stderr)" 1
	done
	[[ -p pipe && -d folder && -L device && -L to_pipe && -L dangling && -L round && ! -e nowhere ]] ||
		fail "a file was changed"
	run heap -o trace -- "$target"
	for kind in pipe folder device to_pipe dangling round; do
		ln -sf $kind trace.live
		run report trace
		equal "status with $kind" "$status" 0
		rm trace.live
	done
	mkfifo trace.live
	run report trace
	equal status "$status" 0
}

# A file that is no trace file is not replaced: not by the tool, and not by the recorder in a child, whose
# file has a name that can be guessed.
test_files_that_stay() {
	local command
	for command in heap cpu; do
		echo precious >file
		run $command -o file -- "$target"
		equal status "$status" 126
		grep -q 'file: exists and is no trace file; remove it, or choose another' stderr || fail "not said"
		equal content "$(cat file)" precious
		printf 'short' >file
		run $command -o file -- "$target"
		equal status "$status" 126
		ln -sf file link
		run $command -o link -- "$target"
		equal status "$status" 126
		equal content "$(cat file)" short
		: >empty
		run $command -o empty -- "$target"
		equal "status with an empty file" "$status" 0
		run $command -o empty -- "$target"
		equal "status with a trace file" "$status" 0
		echo precious >new.live
		run $command -o new -- "$target"
		equal "status beside another live file" "$status" 126
		grep -q 'new.live: exists and is no live trace; remove it, or choose another' stderr || fail "not said"
		equal content "$(cat new.live)" precious
		[[ ! -e new ]] || fail "something was recorded"
	done
	echo precious >victim
	# shellcheck disable=SC2016
	run heap --follow-children -o trace -- bash -c '
		for n in 0 1 2 3; do ln -s victim "trace.$$.$n"; done
		for n in 0 1 2 3; do echo precious >"trace.$BASHPID.9$n"; done
		(for n in 0 1 2 3; do ln -sf victim "trace.$BASHPID.$n"; done; exec "$0" alloc=10); exec "$0" alloc=20' "$target"
	((status != 124)) || fail "waits"
	equal content "$(cat victim)" precious
}

# The loader splits LD_PRELOAD at blanks and colons, and puts a folder in place of $ORIGIN.
test_places_of_the_tool() {
	local folder built
	built=$(dirname "$tool")
	# shellcheck disable=SC2016
	for folder in 'a b' 'a:b' 'a$ORIGIN' '$LIB' ' ' "a'b" 'a;b' 'a"b' $'a\eb' 'a=b' 'ä'; do
		mkdir "$folder"
		cp "$built/incstack" "$built/libincstack_preload.so" "$built/libincstack_recorder.so" "$folder"
		rm -f trace
		status=0
		timeout 120 "./$folder/incstack" heap -o trace -- bash -c 'echo run >ran; exec "$0"' "$target" \
			>stdout 2>stderr || status=$?
		cat stdout stderr >printed
		harmless "$folder"
		case $folder in
		*[\ :\$]*)
			equal "status in $folder" "$status" 126
			grep -q 'LD_PRELOAD can name no path' stderr || fail "$folder: not said"
			[[ ! -e ran && ! -e trace ]] || fail "$folder: the program ran"
			;;
		*)
			equal "status in $folder" "$status" 0
			grep -q '^incstack: traces=[1-9]' stderr || fail "$folder: nothing was recorded"
			;;
		esac
		rm -f ran
	done
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
