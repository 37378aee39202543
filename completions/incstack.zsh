#compdef incstack
# SPDX-License-Identifier: MIT
#
# Completion for zsh: the commands and options that `incstack help` lists, and files.
local -aU found
if (( CURRENT == 2 )); then
	found=(${(f)"$($words[1] help 2>/dev/null | awk '/^  [a-z]/ { print $1 }')"})
elif [[ $words[CURRENT] == -* ]]; then
	found=(${(f)"$($words[1] help $words[2] 2>/dev/null | grep -oE -e '--[a-z][a-z-]*')"})
else
	_files
	return
fi
compadd -- $found
