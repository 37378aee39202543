/* SPDX-License-Identifier: MIT
 *
 * A meter with a clock that the test moves, a thread, and some methods, of which the first is a root.
 */
#ifndef METERED_H
#define METERED_H

#include <check.h>

#include <incstack/instrument.h>

enum { METHODS = 8 };

static uint64_t now; /* a tick is a ns */
static struct incstack_meter *meter;
static struct incstack_meter_thread *thread;
static struct incstack_meter_method *methods[METHODS];

static inline uint64_t read_clock(void *context)
{
	(void)context;
	return now;
}

typedef uint64_t read_fn(void *context);

static inline void create_with(read_fn *read, uint32_t flags, uint32_t contexts, uint32_t depth)
{
	const struct incstack_meter_options options = {.size = sizeof(options),
						       .clock = read,
						       .ticks_per_second = 1e9,
						       .contexts = contexts,
						       .depth = depth,
						       .flags = flags};

	ck_assert_int_eq(incstack_meter_create(&options, &meter), 0);
	for (uint64_t i = 0; i < METHODS; i++)
		ck_assert_int_eq(incstack_meter_method_create(meter, i, &methods[i]), 0);
	ck_assert_int_eq(incstack_meter_method_set_root(methods[0], 1), 0);
	ck_assert_int_eq(incstack_meter_thread_create(meter, 7, &thread), 0);
}

static inline void create(uint32_t flags, uint32_t contexts, uint32_t depth)
{
	now = 1000;
	create_with(read_clock, flags, contexts, depth);
}

static inline void teardown(void)
{
	incstack_meter_destroy(meter);
	meter = NULL;
}

static inline int enter(int method, uintptr_t frame)
{
	return incstack_meter_enter(thread, methods[method], frame);
}

static inline void leave(int method, uintptr_t frame)
{
	incstack_meter_exit(thread, methods[method], frame);
}

static inline struct incstack_meter_stats stats_now(void)
{
	struct incstack_meter_stats stats = {.size = sizeof(stats)};

	ck_assert_int_eq(incstack_meter_stats(meter, &stats), 0);
	return stats;
}

#endif
