/* SPDX-License-Identifier: MIT
 *
 * How tickets are split between running and waiting threads, and the random numbers for a choice.
 */
#include "safepoint.h"

void incstack__split(uint32_t running, uint32_t waiting, uint32_t n, uint32_t *from_running,
		     uint32_t *from_waiting)
{
	uint64_t all = (uint64_t)running + waiting;
	if (n > all)
		n = (uint32_t)all;
	/* The share is rounded half up, without 2 * product, which could overflow. Because n is at
	 * most `all`, neither part exceeds its number of threads. */
	uint64_t product = (uint64_t)n * waiting, share = 0;
	if (all)
		share = product / all + (product % all >= all - product % all);
	*from_waiting = (uint32_t)share;
	*from_running = n - (uint32_t)share;
}

/* xorshift64: good enough for a fair choice, and reproducible for a seed. */
uint32_t incstack__random_below(struct incstack_safepoint *safepoint, uint32_t limit)
{
	uint64_t x = safepoint->random;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	safepoint->random = x;
	return (uint32_t)((x >> 32) % limit);
}
