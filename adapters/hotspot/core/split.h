/* SPDX-License-Identifier: MIT
 *
 * How samples are split between running and waiting threads. Used by the adapter and by the agent.
 */
#ifndef INCSTACK_JVM_SPLIT_H
#define INCSTACK_JVM_SPLIT_H

#include <stdint.h>

/* Waiting threads get their share of n, rounded to nearest, halves up; running threads get the rest (ICPE'15,
 * section 3.1). Neither group gets more samples than it has threads, fewer than 2^31. But both groups get a
 * sample if n is 2 or more. The share of the only running thread among many that wait would be rounded to no
 * sample, each time. */
static inline void incstack__split_for_both(uint32_t running, uint32_t waiting, uint32_t n,
					    uint32_t *from_running, uint32_t *from_waiting)
{
	const uint64_t all = (uint64_t)running + waiting;
	const uint64_t samples = n < all ? n : all;

	*from_waiting = all ? (uint32_t)((2 * samples * waiting + all) / (2 * all)) : 0;
	*from_running = (uint32_t)samples - *from_waiting;
	if (*from_running == 0 && running > 0 && *from_waiting > 1) {
		*from_running = 1;
		--*from_waiting;
	} else if (*from_waiting == 0 && waiting > 0 && *from_running > 1) {
		*from_waiting = 1;
		--*from_running;
	}
}

#endif
