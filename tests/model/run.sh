#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks tests/model/ticket.pml: safety and liveness of the protocol in each
# configuration, and that every seeded fault is found in the one that is named.
# Last line: model: configurations=N faults=M missed=0 wrong=0; exit 1 otherwise.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
wrong=0 missed=0 configurations=0 faults=0

# check safety|liveness FLAGS...: prints ok, error, or broken
check() {
	kind=$1
	shift
	rm -f pan.* ./*.trail
	if [ "$kind" = safety ]; then build=-DSAFETY run=; else build=-DNFAIR=3 run="-a -f -N ends"; fi
	# A fault is found sooner than a compiler optimizes.
	case $* in *FAULT*) build="$build -O0" ;; *) build="$build -O2" ;; esac
	[ "$kind" = safety ] && set -- "$@" -DSAFETY_ONLY
	spin -a "$@" "$here/ticket.pml" >spin.log 2>&1 || { echo broken; return; }
	gcc -w -DCOLLAPSE -DVECTORSZ=2048 $build -o pan pan.c >gcc.log 2>&1 || { echo broken; return; }
	timeout 240 ./pan -m1000000 $run >pan.log 2>&1
	if grep -q 'max search depth too small\|out of memory\|Search not completed' pan.log &&
		! grep -q 'errors: [1-9]' pan.log; then echo broken
	elif grep -q 'errors: 0$' pan.log; then echo ok
	elif grep -q 'errors: [1-9]' pan.log; then echo error
	else echo broken; fi
}

holds() {
	configurations=$((configurations + 1))
	got=$(check "$@")
	echo "$*: $got, $(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log | head -1) states"
	[ "$got" = ok ] || wrong=$((wrong + 1))
}

finds() {
	faults=$((faults + 1))
	got=$(check "$@")
	echo "$*: $got (an error is wanted)"
	[ "$got" = error ] || missed=$((missed + 1))
}

holds safety -DN=1
holds safety -DN=2
holds safety -DMUTE -DT=3 -DN=1 -DMUST_EXPIRE -DNO_EXIT -DALL_RUN
holds liveness -DN=1 -DNO_EXPIRY
holds liveness -DMUTE -DN=2 -DMUST_EXPIRE
holds liveness -DMUTE -DN=1 -DNO_EXIT -DNO_WAIT -DNO_EXPIRY -DALL_RUN
holds safety -DN=1 -DRIVAL -DNO_EXPIRY -DNO_EXIT -DNO_SHORT
holds safety -DN=2 -DRIVAL -DNO_EXPIRY -DNO_EXIT -DNO_SHORT
holds liveness -DN=1 -DRIVAL -DNO_EXPIRY

finds safety -DN=1 -DRIVAL -DNO_EXPIRY -DNO_EXIT -DNO_SHORT -DFAULT_SHORT
finds liveness -DN=1 -DRIVAL -DNO_EXPIRY -DFAULT_UNHOLD_CLAIM
finds liveness -DN=1 -DRIVAL -DNO_EXPIRY -DFAULT_RESUME_CLAIM
finds liveness -DN=2 -DNO_EXPIRY -DFAULT_ARM_HELD
finds safety -DN=1 -DFAULT_DRAW
finds safety -DFAULT_CLAIM
finds safety -DFAULT_LEAVE
finds safety -DFAULT_HELD_DRAW
finds safety -DFAULT_ARM_REF
finds safety -DFAULT_STARTER
finds safety -DFAULT_EXPIRE_REF
finds safety -DFAULT_UNHOLD
finds liveness -DNO_EXPIRY -DFAULT_EXIT
finds liveness -DNO_EXPIRY -DFAULT_ENTER
finds liveness -DNO_EXPIRY -DFAULT_ARM_WAITING
finds liveness -DNO_EXPIRY -DFAULT_ARM_GONE
finds liveness -DMUTE -DMUST_EXPIRE -DFAULT_CLOSE
finds liveness -DMUTE -DMUST_EXPIRE -DFAULT_CLOSE_DISARM
finds liveness -DMUTE -DN=1 -DNO_EXIT -DNO_WAIT -DNO_EXPIRY -DALL_RUN -DFAULT_DISARM
finds liveness -DMUTE -DN=1 -DNO_EXIT -DNO_WAIT -DNO_EXPIRY -DALL_RUN -DFAULT_REARM

echo "model: configurations=$configurations faults=$faults missed=$missed wrong=$wrong"
[ $((missed + wrong)) -eq 0 ]
