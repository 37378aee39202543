/* SPDX-License-Identifier: MIT
 *
 * Which methods are worth their price. A method whose calls take less time than the clock needs gets its time
 * from samples.
 */
#include <stdlib.h>

#include "meter.h"

enum { CALLS_LEAST = 1000 }; /* before a method is judged */

/* A method that ran since the last look. */
struct judged {
	struct incstack_meter_method *method;
	double calls, cost; /* since then; in ticks, in its mode */
};

static void sum_usage(const struct incstack_meter *meter, const struct copy *sum)
{
	for (struct incstack_meter_method *at = meter->methods; at; at = at->older)
		at->now = (struct usage){0, 0, 0};
	for (size_t i = 0; i < sum->count; i++) {
		const struct copied *node = &sum->nodes[i];
		struct usage *usage = &node->method->now;

		usage->timed += node->timed;
		usage->counted += node->counted;
		usage->own += incstack__meter_own(&meter->price, node);
	}
}

static bool is_root(const struct incstack_meter_method *method)
{
	return atomic_load_explicit(&method->is_root, memory_order_relaxed);
}

static uint32_t mode_of(const struct incstack_meter_method *method)
{
	return atomic_load_explicit(&method->mode, memory_order_relaxed);
}

static void set_mode(struct incstack_meter_method *method, uint32_t mode)
{
	atomic_store_explicit(&method->mode, (uint8_t)mode, memory_order_relaxed);
}

/* Whether the clock costs more than half of what it measures. */
static bool is_too_short(const struct price *price, const struct usage *now,
			 const struct usage *seen)
{
	const double timed = (double)(now->timed - seen->timed);

	return timed >= CALLS_LEAST &&
	       (now->own - seen->own) / timed < 2 * (price->inner + price->outer);
}

static double cost_of(const struct price *price, uint32_t mode)
{
	return mode == INCSTACK_METER_TIMED     ? price->inner + price->outer
	       : mode == INCSTACK_METER_COUNTED ? price->counted
						: 0;
}

/* Lists the methods that ran, and demotes those that are too short. Returns how many are listed. */
static size_t judge(struct incstack_meter *meter, struct judged *list, uint32_t *changed)
{
	size_t count = 0;

	for (struct incstack_meter_method *at = meter->methods; at; at = at->older) {
		const double calls = (double)(at->now.timed + at->now.counted - at->seen.timed -
					      at->seen.counted);

		if (calls > 0 && !is_root(at)) {
			if (mode_of(at) == INCSTACK_METER_TIMED &&
			    is_too_short(&meter->price, &at->now, &at->seen)) {
				set_mode(at, INCSTACK_METER_COUNTED);
				++*changed;
			}
			list[count++] = (struct judged){
				at, calls, calls * cost_of(&meter->price, mode_of(at))};
		}
		at->seen = at->now;
	}
	return count;
}

static int by_cost(const void *a, const void *b)
{
	const double left = ((const struct judged *)a)->cost,
		     right = ((const struct judged *)b)->cost;

	return left < right ? 1 : -(left > right);
}

/* Moves methods from one mode to the next until the rest of the cost is within the budget. */
static double save(const struct price *price, struct judged *list, size_t count, uint32_t from,
		   double cost, double allowed, uint32_t *changed)
{
	qsort(list, count, sizeof(*list), by_cost);
	for (size_t i = 0; i < count && cost > allowed; i++) {
		const double less = list[i].calls * cost_of(price, from + 1);

		if (mode_of(list[i].method) != from)
			continue;
		set_mode(list[i].method, from + 1);
		cost -= list[i].cost - less;
		list[i].cost = less;
		++*changed;
	}
	return cost;
}

static double sum_of(const struct judged *list, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += list[i].cost;
	return sum;
}

static double ticks_of(const struct copy *sum)
{
	double ticks = 0;

	for (size_t i = 0; i < sum->count; i++)
		ticks += (double)sum->nodes[i].ticks;
	return ticks;
}

static int adapt(struct incstack_meter *meter, double budget, uint32_t *changed)
{
	struct judged *list = calloc(meter->method_count + 1u, sizeof(*list));
	struct copy sum;
	double ticks, cost;
	size_t count;
	int error = list ? incstack__meter_sum(meter, false, &sum) : INCSTACK_ENOMEM;

	if (!error) {
		ticks = ticks_of(&sum) - meter->seen_ticks;
		meter->seen_ticks += ticks;
		sum_usage(meter, &sum);
		incstack__copy_free(&sum);
		count = judge(meter, list, changed);
		if (budget > 0 && ticks > 0) {
			cost = save(&meter->price, list, count, INCSTACK_METER_TIMED,
				    sum_of(list, count), budget * ticks, changed);
			(void)save(&meter->price, list, count, INCSTACK_METER_COUNTED, cost,
				   budget * ticks, changed);
		}
	}
	free(list);
	return error;
}

int incstack_meter_adapt(struct incstack_meter *meter, double budget, uint32_t *changed)
{
	uint32_t count = 0;
	int error;

	if (!meter || !(budget >= 0 && budget <= 1))
		return INCSTACK_EINVAL;
	meter_lock(meter);
	error = adapt(meter, budget, &count);
	meter_unlock(meter);
	if (changed)
		*changed = count;
	return error;
}
