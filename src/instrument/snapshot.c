/* SPDX-License-Identifier: MIT
 *
 * Results: contexts with calibrated times, and counters.
 */
#include <stdlib.h>

#include "meter.h"

struct incstack_meter_snapshot {
	struct incstack_meter_context *contexts;
	size_t count;
};

static uint64_t whole(double ns)
{
	return ns > 0 ? (uint64_t)(ns + 0.5) : 0;
}

static struct incstack_meter_context context_of(const struct copied *node,
						const struct price *price, double tick_ns)
{
	const double timed = incstack__meter_own(price, node) * tick_ns - (double)node->given_ns;

	return (struct incstack_meter_context){
		.size = sizeof(struct incstack_meter_context),
		.parent = node->parent,
		.is_counted = node->counted > 0,
		.thread = node->thread,
		.function = node->method->function,
		.calls = node->timed + node->counted,
		.timed = node->timed,
		.own_ns = whole(timed) + node->by_samples_ns,
		.waiting_ns = whole((double)node->waits * tick_ns),
		.sampled_ns = node->sampled_ns,
		.measured_ns = whole((double)node->ticks * tick_ns),
		.error_ns =
			whole((double)(node->timed + node->inside_timed) * price->error * tick_ns),
	};
}

/* Parents come before their callees. */
static void add_totals(const struct incstack_meter_snapshot *snapshot)
{
	for (size_t i = snapshot->count; i-- > 0;) {
		struct incstack_meter_context *context = &snapshot->contexts[i];

		context->total_ns += context->own_ns;
		if (context->parent != INCSTACK_METER_NONE)
			snapshot->contexts[context->parent].total_ns += context->total_ns;
	}
}

static int fill(struct incstack_meter_snapshot *snapshot, const struct copy *sum,
		const struct price *price, double tick_ns)
{
	snapshot->contexts = calloc(sum->count + 1, sizeof(*snapshot->contexts));
	if (!snapshot->contexts)
		return INCSTACK_ENOMEM;
	snapshot->count = sum->count;
	for (size_t i = 0; i < sum->count; i++)
		snapshot->contexts[i] = context_of(&sum->nodes[i], price, tick_ns);
	add_totals(snapshot);
	return 0;
}

int incstack_meter_snapshot_create(struct incstack_meter *meter, uint32_t flags,
				   struct incstack_meter_snapshot **created)
{
	struct incstack_meter_snapshot *snapshot;
	struct price price;
	struct copy sum;
	int error;

	if (!meter || !created || (flags & ~(uint32_t)INCSTACK_METER_PER_THREAD))
		return INCSTACK_EINVAL;
	snapshot = calloc(1, sizeof(*snapshot));
	if (!snapshot)
		return INCSTACK_ENOMEM;
	meter_lock(meter);
	error = incstack__meter_sum(meter, flags & INCSTACK_METER_PER_THREAD, &sum);
	price = meter->price;
	meter_unlock(meter);
	if (!error) {
		error = fill(snapshot, &sum, &price, incstack__meter_tick_ns(meter));
		incstack__copy_free(&sum);
	}
	if (error)
		free(snapshot);
	else
		*created = snapshot;
	return error;
}

void incstack_meter_snapshot_destroy(struct incstack_meter_snapshot *snapshot)
{
	if (!snapshot)
		return;
	free(snapshot->contexts);
	free(snapshot);
}

int incstack_meter_snapshot_context(const struct incstack_meter_snapshot *snapshot, uint32_t number,
				    struct incstack_meter_context *context)
{
	if (!snapshot || !context || context->size != sizeof(*context) || number >= snapshot->count)
		return INCSTACK_EINVAL;
	*context = snapshot->contexts[number];
	return 0;
}

/* ---- counters -------------------------------------------------------------------------------- */

static void add_node(struct incstack_meter_stats *stats, const struct price *price, uint64_t timed,
		     uint64_t counted)
{
	stats->calls += timed + counted;
	stats->timed += timed;
	stats->price_ns +=
		(double)timed * (price->inner + price->outer) + (double)counted * price->counted;
}

/* Adds what threads and ended threads have, and returns the ticks in the subgraph. */
static double add_all(const struct incstack_meter *meter, struct incstack_meter_stats *stats)
{
	double ticks = 0;

	for (size_t i = 0; i < meter->ended.count; i++) {
		const struct copied *node = &meter->ended.nodes[i];

		add_node(stats, &meter->price, node->timed, node->counted);
		ticks += (double)node->ticks;
	}
	for (const struct incstack_meter_thread *at = meter->threads; at; at = at->older) {
		const uint32_t count = atomic_load_explicit(&at->node_count, memory_order_acquire);

		for (uint32_t i = 1; i < count; i++) {
			add_node(stats, &meter->price, value_of(&at->nodes[i].timed),
				 value_of(&at->nodes[i].counted));
			ticks += (double)value_of(&at->nodes[i].ticks);
		}
	}
	return ticks;
}

int incstack_meter_stats(struct incstack_meter *meter, struct incstack_meter_stats *stats)
{
	double ticks, tick_ns;

	if (!meter || !stats || stats->size != sizeof(*stats))
		return INCSTACK_EINVAL;
	tick_ns = incstack__meter_tick_ns(meter);
	meter_lock(meter);
	*stats = meter->gone;
	stats->size = sizeof(*stats);
	stats->threads = meter->thread_count;
	for (const struct incstack_meter_thread *at = meter->threads; at; at = at->older)
		incstack__meter_add_counters(stats, at, tick_ns);
	ticks = add_all(meter, stats);
	stats->inner_ns = meter->price.inner * tick_ns;
	stats->outer_ns = meter->price.outer * tick_ns;
	stats->counted_ns = meter->price.counted * tick_ns;
	stats->error_ns = meter->price.error * tick_ns;
	stats->overhead = ticks > 0 ? stats->price_ns / ticks : 0;
	stats->price_ns *= tick_ns;
	meter_unlock(meter);
	return 0;
}
