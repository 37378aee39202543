# SPDX-License-Identifier: MIT
#
# Completion for bash: the commands and options that `incstack help` lists, and files.
_incstack() {
	local tool=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} words=
	if ((COMP_CWORD == 1)); then
		words=$("$tool" help 2>/dev/null | awk '/^  [a-z]/ { print $1 }')
	elif [[ $word == -* ]]; then
		words=$("$tool" help "${COMP_WORDS[1]}" 2>/dev/null | grep -oE -e '--[a-z][a-z-]*')
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" | sort -u)
}
complete -o filenames -F _incstack incstack
