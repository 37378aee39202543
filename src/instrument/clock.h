/* SPDX-License-Identifier: MIT
 *
 * The clock of a meter: the processor's counter if it runs at one speed at all times, else the kernel's clock, or
 * a clock of the embedder.
 */
#ifndef INCSTACK__INSTRUMENT_CLOCK_H
#define INCSTACK__INSTRUMENT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

struct clock {
	uint64_t (*read)(void *context); /* null: the counter */
	void *context;
};

static inline uint64_t clock_ns(void *context)
{
	struct timespec now;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether the counter runs at one speed, also in the processor's sleep. */
static inline bool clock_has_counter(void)
{
#if defined(__x86_64__)
	enum { LEAF = 0x80000007, INVARIANT = 1 << 8 };
	unsigned a, b, c, d = 0;

	return __get_cpuid((unsigned)LEAF, &a, &b, &c, &d) && (d & INVARIANT);
#else
	return false;
#endif
}

static inline uint64_t clock_read(const struct clock *clock)
{
#if defined(__x86_64__)
	if (__builtin_expect(!clock->read, 1))
		return __builtin_ia32_rdtsc();
#endif
	return clock->read(clock->context);
}

#endif
