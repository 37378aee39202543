/* SPDX-License-Identifier: MIT
 *
 * How samples are split between running and waiting threads. Used by the adapter and by the agent.
 */
#ifndef INCSTACK_JVM_SPLIT_H
#define INCSTACK_JVM_SPLIT_H

#include <incstack/safepoint.h>

/* Splits as incstack_safepoint_split does, but both groups get a sample if n is 2 or more. The share of the
 * only running thread among many that wait would be rounded to no sample, each time. */
static inline void incstack__split_for_both(uint32_t running, uint32_t waiting, uint32_t n,
					    uint32_t *from_running, uint32_t *from_waiting)
{
	incstack_safepoint_split(running, waiting, n, from_running, from_waiting);
	if (*from_running == 0 && running > 0 && *from_waiting > 1) {
		*from_running = 1;
		--*from_waiting;
	} else if (*from_waiting == 0 && waiting > 0 && *from_running > 1) {
		*from_waiting = 1;
		--*from_running;
	}
}

#endif
