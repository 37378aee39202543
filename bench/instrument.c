/* SPDX-License-Identifier: MIT
 *
 * The price of the events of instrumented methods, in ns and in readings of the clock.
 *
 * usage: instrument
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <incstack/instrument.h>

enum { CALLS = 2000000, ROUNDS = 7, CALLEES = 64 };

static volatile unsigned long long sink; /* so that each reading is made */
static struct incstack_meter_thread *thread;
static struct incstack_meter_method *root, *methods[CALLEES];

static double ns_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void read_clock(void)
{
	for (int i = 0; i < CALLS; i++)
		sink = __builtin_ia32_rdtsc();
}

static void one_callee(void)
{
	for (int i = 0; i < CALLS; i++) {
		incstack_meter_enter(thread, methods[0], 1);
		incstack_meter_exit(thread, methods[0], 1);
	}
}

static void many_callees(void)
{
	for (int i = 0; i < CALLS; i++) {
		incstack_meter_enter(thread, methods[i % CALLEES], 1);
		incstack_meter_exit(thread, methods[i % CALLEES], 1);
	}
}

static double measure(void (*run)(void))
{
	double least = 1e18;

	for (int i = 0; i < ROUNDS; i++) {
		const double start = ns_now();
		const double passed = (run(), ns_now() - start);

		least = passed < least ? passed : least;
	}
	return least / CALLS;
}

static void set_mode(uint32_t mode)
{
	for (int i = 0; i < CALLEES; i++)
		incstack_meter_method_set_mode(methods[i], mode);
}

int main(void)
{
	const struct incstack_meter_options options = {.size = sizeof(options)};
	struct incstack_meter_stats stats = {.size = sizeof(stats)};
	struct incstack_meter *meter;
	double clock;

	if (incstack_meter_create(&options, &meter) ||
	    incstack_meter_thread_create(meter, 1, &thread) ||
	    incstack_meter_method_create(meter, 0, &root))
		return EXIT_FAILURE;
	for (int i = 0; i < CALLEES; i++)
		if (incstack_meter_method_create(meter, (uint64_t)i + 1, &methods[i]))
			return EXIT_FAILURE;
	incstack_meter_method_set_root(root, 1);
	clock = measure(read_clock);
	printf("%-34s %6.1f ns\n", "a reading of the clock", clock);
	printf("%-34s %6.1f ns\n", "a call outside of the subgraph", measure(one_callee));
	incstack_meter_enter(thread, root, 2);
	printf("%-34s %6.1f ns, %.2f readings\n", "a timed call", measure(one_callee),
	       measure(one_callee) / clock);
	printf("%-34s %6.1f ns\n", "timed calls of 64 methods in turn", measure(many_callees));
	set_mode(INCSTACK_METER_COUNTED);
	printf("%-34s %6.1f ns\n", "a counted call", measure(one_callee));
	printf("%-34s %6.1f ns\n", "counted calls of 64 in turn", measure(many_callees));
	incstack_meter_exit(thread, root, 2);
	if (incstack_meter_stats(meter, &stats) == 0)
		printf("calibrated: inner %.1f ns, outer %.1f ns, counted %.1f ns, spread %.1f "
		       "ns\n",
		       stats.inner_ns, stats.outer_ns, stats.counted_ns, stats.error_ns);
	incstack_meter_destroy(meter);
	return EXIT_SUCCESS;
}
