/* SPDX-License-Identifier: MIT
 *
 * Divides the waits of a thread into ticks.
 */
#ifndef INCSTACK_TRACEFILE_PARTS_H
#define INCSTACK_TRACEFILE_PARTS_H

#include "states.h"

/* What no tick of a thread stands for yet. */
struct incstack__parts {
	uint64_t random;
	struct incstack__part {
		int64_t part; /* ns */
		int64_t due;  /* so many of them make a tick */
	} states[INCSTACK__STATES];
};

/* Returns a number below an interval (xorshift64). */
static inline int64_t incstack__parts_random(struct incstack__parts *parts, uint64_t interval)
{
	parts->random ^= parts->random << 13;
	parts->random ^= parts->random >> 7;
	parts->random ^= parts->random << 17;
	return (int64_t)(parts->random % interval);
}

/* The first tick comes after a part of an interval that depends on the thread's number, so that short waits are
 * sampled as often as they should be. */
static inline void incstack__parts_begin(struct incstack__parts *parts, uint32_t tid,
					 uint64_t interval)
{
	const uint64_t hash = (uint64_t)tid * 2654435761u;

	parts->random = hash | 1;
	for (int i = 0; i < INCSTACK__STATES; i++)
		parts->states[i] =
			(struct incstack__part){(int64_t)(hash % interval), (int64_t)interval};
}

/* Returns how many ticks the state has got after so many ns. A rest below an interval makes a tick together with earlier
 * rests, which comes up to half an interval too early or too late: a program whose waits repeat in each interval would
 * otherwise have all ticks in the same wait. */
static inline uint64_t incstack__parts_ticks(struct incstack__parts *parts,
					     enum incstack__state state, uint64_t ns,
					     uint64_t interval)
{
	struct incstack__part *part = &parts->states[state];
	uint64_t ticks = ns / interval;

	part->part += (int64_t)(ns % interval);
	for (; part->part >= part->due; ticks++) {
		part->part -= (int64_t)interval;
		part->due = (int64_t)interval / 2 + incstack__parts_random(parts, interval);
	}
	return ticks;
}

#endif
