#!/bin/bash
# SPDX-License-Identifier: MIT
#
# seeded.sh TOOL PRELOAD TARGET: both ways of --crosscheck find deliberate bugs of the core,
# and no difference without one. Beside PRELOAD is a recorder that has them.
set -euo pipefail
tool=$1 preload=$2 target=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

# compare WALKER MODE FAULT: $compared traces, $unwound of them by libunwind, $differ of them.
compare() {
	local line interval=1
	[[ $1 == own ]] || interval=20000 # libunwind is slow
	rm -f trace*
	INCSTACK_FAULT=$3 LD_PRELOAD=$preload \
		INCSTACK_HEAP="interval=$interval;mode=$2;crosscheck=$1;follow=0;file=$PWD/trace" \
		"$target" 1 >stdout
	line=$("$tool" report --folded trace 2>stderr | grep ' were compared with full walks, ')
	echo "walker $1, mode $2, fault $3: $line"
	read -r compared unwound differ <<<"$(tr -cs '0-9\n' ' ' <<<"$line")"
}

# 0: no bug. 104: what lay between a barrier and the known is left out. 101: a frame is known
# by its address, whatever its slot holds.
for walker in own libunwind; do
	for bug in patch/0 validate/0 patch/104 validate/101; do
		compare "$walker" "${bug%/*}" "${bug#*/}"
		((compared > 100 && unwound > 0)) || exit 1
		[[ $bug == */0 ]] && ((differ > 0)) && exit 1
		[[ $bug != */0 ]] && ((differ == 0)) && exit 1
		[[ $walker == libunwind ]] && ((unwound < compared)) && exit 1
		[[ $walker == own ]] && ((unwound > compared / 500)) && exit 1
	done
done
exit 0
