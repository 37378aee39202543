/* SPDX-License-Identifier: MIT
 *
 * What events cost, and how times are corrected for it (Dmitriev 2003, section 5.3).
 */
#include <stdlib.h>

#include "meter.h"

enum { GROUPS = 101, CALLS = 200, WARM_UP = 10, LIMIT = 8 };

double incstack__meter_tick_ns(const struct incstack_meter *meter)
{
	uint64_t ticks, ns;

	if (meter->options.clock)
		return 1e9 / meter->options.ticks_per_second;
	if (meter->clock.read)
		return 1;
	ticks = clock_read(&meter->clock) - meter->began;
	ns = clock_ns(NULL) - meter->began_ns;
	return ticks && ns ? (double)ns / (double)ticks : 1;
}

double incstack__meter_own(const struct price *price, const struct copied *node)
{
	return (double)node->ticks - (double)node->timed * price->inner -
	       (double)node->inside_timed * price->outer -
	       (double)node->inside_counted * price->counted;
}

/* What is measured in groups of calls: ticks of one call in each group. */
struct groups {
	double inner[GROUPS], all[GROUPS], bare[GROUPS], counted[GROUPS];
};

struct calibration {
	incstack_meter_run_fn *run;
	void *context;
	struct incstack_meter_thread *thread;
	struct incstack_meter_method *root, *method;
};

static void run_events(void *context, struct incstack_meter_thread *thread,
		       struct incstack_meter_method *method, uint32_t calls)
{
	(void)context;
	for (uint32_t i = 0; i < calls && thread; i++) {
		incstack_meter_enter(thread, method, 1);
		incstack_meter_exit(thread, method, 1);
	}
}

/* Returns the ticks that a call takes. */
static double run_group(const struct calibration *c, bool is_bare)
{
	const uint64_t start = clock_read(&c->thread->clock);

	c->run(c->context, is_bare ? NULL : c->thread, c->method, CALLS);
	return (double)(clock_read(&c->thread->clock) - start) / CALLS;
}

/* The first contexts of the thread are the root's and the method's. */
static double inner_ticks(const struct calibration *c)
{
	enum { CONTEXT = 2 };
	const struct node *node = &c->thread->nodes[CONTEXT];
	const bool is_there = value_of(&node->timed) > 0;

	return is_there ? (double)value_of(&node->ticks) : 0;
}

static void run_groups(const struct calibration *c, struct groups *groups)
{
	enum { ROOT_FRAME = 2 };

	incstack_meter_enter(c->thread, c->root, ROOT_FRAME);
	for (int i = -WARM_UP; i < GROUPS; i++) {
		const int at = i < 0 ? 0 : i;
		double before;

		incstack_meter_method_set_mode(c->method, INCSTACK_METER_TIMED);
		before = inner_ticks(c);
		groups->all[at] = run_group(c, false);
		groups->inner[at] = (inner_ticks(c) - before) / CALLS;
		incstack_meter_method_set_mode(c->method, INCSTACK_METER_COUNTED);
		groups->counted[at] = run_group(c, false);
		groups->bare[at] = run_group(c, true);
	}
	incstack_meter_exit(c->thread, c->root, ROOT_FRAME);
}

static int by_size(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static double above_zero(double ticks)
{
	return ticks > 0 ? ticks : 0;
}

static struct price evaluate(struct groups *groups)
{
	enum { MIDDLE = GROUPS / 2, LOW = GROUPS / 4, HIGH = GROUPS - 1 - GROUPS / 4 };
	double *const all[] = {groups->inner, groups->all, groups->bare, groups->counted};
	struct price price;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		qsort(all[i], GROUPS, sizeof(double), by_size);
	price.inner = groups->inner[MIDDLE];
	price.outer = above_zero(groups->all[MIDDLE] - groups->bare[MIDDLE] - price.inner);
	price.counted = above_zero(groups->counted[MIDDLE] - groups->bare[MIDDLE]);
	price.error = (groups->all[HIGH] - groups->all[LOW]) / 2;
	return price;
}

/* The methods are in no list, so that no result shows them. */
int incstack_meter_calibrate(struct incstack_meter *meter, incstack_meter_run_fn *run,
			     void *context)
{
	struct incstack_meter_method root = {.is_root = true}, method = {.mode = 0};
	struct calibration calibration = {run ? run : run_events, context, NULL, &root, &method};
	struct groups *groups;
	struct price price;

	if (!meter)
		return INCSTACK_EINVAL;
	groups = malloc(sizeof(*groups));
	if (!groups || incstack__meter_thread_make(meter, LIMIT, LIMIT, &calibration.thread)) {
		free(groups);
		return INCSTACK_ENOMEM;
	}
	run_groups(&calibration, groups);
	price = evaluate(groups);
	incstack__meter_thread_free(calibration.thread);
	free(groups);
	meter_lock(meter);
	meter->price = price;
	meter_unlock(meter);
	return 0;
}
