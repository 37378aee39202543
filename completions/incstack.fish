# SPDX-License-Identifier: MIT
#
# Completion for fish: the commands and options that `incstack help` lists, and files.
complete -c incstack -n __fish_use_subcommand -f \
	-a '(incstack help 2>/dev/null | string match -rg "^  ([a-z]+)")'
complete -c incstack -n 'not __fish_use_subcommand; and string match -q -- "-*" (commandline -ct)' \
	-a '(incstack help (commandline -opc)[2] 2>/dev/null | string match -rag -- "(--[a-z][a-z-]*)" | sort -u)'
