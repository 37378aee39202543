#!/bin/bash
# SPDX-License-Identifier: MIT
#
# command_line.sh TOOL TARGET NAME runs the function test_NAME in a new directory: options, errors, help,
# completion and the manual.
set -euo pipefail
tool=$1 target=$2
manual=$(realpath "$(dirname "${BASH_SOURCE[0]}")")/../../man/incstack-heap.1

# shellcheck source=tests/tool/heap_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/heap_common.sh"

test_errors() {
	refuse 127 'no such program' -o trace -- nosuchprogram
	refuse 126 'chmod' -o trace -- /etc/passwd
	printf '#!/nonexistent\n' >script && chmod +x script
	refuse 127 'interpreter' -o trace -- ./script
	cp "$target" setuid && chmod u+s setuid
	refuse 126 'set-uid' -o trace -- ./setuid
	printf 'int main(void) { return 0; }' | cc -static -x c - -o static
	refuse 126 'static' -o trace -- ./static
	printf 'int main(void) { return 0; }' | cc -fsanitize=address -x c - -o sanitized
	refuse 126 'AddressSanitizer' -o trace -- ./sanitized
	printf 'int main(void) { return 0; }' | cc -fsanitize=thread -x c - -o sanitized
	refuse 126 'ThreadSanitizer' -o trace -- ./sanitized
	refuse 126 'cannot write' -o nowhere/trace -- true
	refuse 126 'not a regular file' -o /dev/null -- true
	[[ -c /dev/null ]] || fail "/dev/null is gone"
	refuse 2 'no program given' -o trace
	refuse 2 'no program given' -o trace --
	refuse 2 "unknown or ambiguous option '--nosuchoption'" --nosuchoption
	refuse 2 "unknown or ambiguous option '--a.x1b.31mX'" $'--a\x1b[31mX'
	refuse 2 "unknown option '-.x1b'" $'-\x1b'
	refuse 2 "option '--output' needs a value" --output
	refuse 2 "option '--threads=1' takes no value" --threads=1
	refuse 2 'interval' -o trace --interval 10x -- true
	refuse 2 'interval' -o trace --interval 0 -- true
	refuse 2 'interval' -o trace --interval -1 -- true
	refuse 2 'mode' -o trace --mode fast -- true
	refuse 2 'own' -o trace --crosscheck=all -- true
	"$tool" heap --help | grep -q 'incstack: traces=N' || fail "help"
}

# help and -V are the words that other tools have for --help and --version.
test_help() {
	equal "help" "$("$tool" help)" "$("$tool" --help)"
	equal "-V" "$("$tool" -V)" "$("$tool" --version)"
	local command
	for command in heap report convert compare merge; do
		equal "help $command" "$("$tool" help $command)" "$("$tool" $command --help)"
		"$tool" help | grep -q "^  $command " || fail "$command"
	done
	! "$tool" help nosuchcommand 2>stderr || fail "a command that there is not"
	grep -q "unknown command 'nosuchcommand'" stderr || fail "$(cat stderr)"
}

# What bash, zsh and fish offer is what the help lists.
test_completion() {
	local folder shell
	folder=$(dirname "$0")/../../completions
	# shellcheck source=/dev/null
	source "$folder/incstack.bash"
	complete_words() {
		COMP_WORDS=("$tool" "$@") COMP_CWORD=$#
		_incstack
		echo "${COMPREPLY[*]}"
	}
	equal "commands" "$(complete_words co)" "compare convert"
	equal "options" "$(complete_words heap --cr)" "--crosscheck"
	touch file.folded
	equal "files" "$(complete_words report file)" "file.folded"
	for shell in zsh fish; do
		! command -v $shell >/dev/null || $shell -n "$folder/incstack.$shell" || fail $shell
	done
	if command -v fish >/dev/null; then
		equal "in fish" "$(HOME=$PWD PATH=$(dirname "$tool"):$PATH fish --no-config -c \
			"source $folder/incstack.fish
			complete -C 'incstack co'; complete -C 'incstack heap --cr'" | xargs)" \
			"compare convert --crosscheck"
	fi
}

# Every option of the help is in the manual.
test_manual() {
	local option
	for option in $("$tool" heap --help | grep -o -e '--[a-z][a-z-]*' | sort -u); do
		[[ $option == --help ]] || grep -q "Fl -${option#--}" "$manual" || fail "$option"
	done
	if command -v mandoc >/dev/null; then
		mandoc -Tlint -Wwarning "$manual" || fail "the manual has faults"
	fi
}

# Options behind the program are its own, its exit status is ours, names may be odd.
test_program() {
	printf '#!/bin/sh\necho "$@"\nexit 7\n' >'my program' && chmod +x 'my program'
	record -o 'my trace' './my program' -o foo --mode bar
	equal status "$status" 7
	equal output "$(cat stdout)" '-o foo --mode bar'
	[[ -s 'my trace.html' && -e 'my trace.folded' ]] || fail "no files"
	record -- true
	equal status "$status" 0
	ls incstack.*.heap.html >/dev/null
	mkdir elsewhere
	record -o trace -- sh -c "cd elsewhere; exec '$target' alloc=5"
	[[ -s trace.html ]] || fail "the trace file is relative to where the tool was started"
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
"test_$3"
