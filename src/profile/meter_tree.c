/* SPDX-License-Identifier: MIT
 *
 * Makes profiles of what a meter has measured. A context comes after its caller, so one pass is enough.
 */
#include <stdio.h>
#include <stdlib.h>

#include <incstack/profile_instrument.h>

#include "named_root.h"

enum { TIME, CALLS, WAITING, MEASURED, KINDS };

struct making {
	const struct incstack_meter_snapshot *snapshot;
	incstack_profile_method_fn *describe;
	void *context;
	struct incstack_profile *profile;
	uint32_t *nodes; /* of the contexts */
};

static uint32_t count_contexts(const struct incstack_meter_snapshot *snapshot)
{
	struct incstack_meter_context context = {.size = sizeof(context)};
	uint32_t count = 0;

	while (incstack_meter_snapshot_context(snapshot, count, &context) == 0)
		count++;
	return count;
}

/* Finds the node of the caller: of a context, of a thread, or the root. */
static int find_caller(const struct making *making, const struct incstack_meter_context *at,
		       uint32_t *node)
{
	char name[40];

	*node = INCSTACK_PROFILE_ROOT;
	if (at->parent != INCSTACK_METER_NONE) {
		*node = making->nodes[at->parent];
		return 0;
	}
	if (at->thread == 0)
		return 0;
	snprintf(name, sizeof(name), "thread %llu", (unsigned long long)at->thread);
	return incstack__named_root(making->profile, name, node);
}

static int add_context(const struct making *making, uint32_t number)
{
	struct incstack_meter_context at = {.size = sizeof(at)};
	struct incstack_profile_frame frame = {.size = sizeof(frame), .position = -1};
	uint64_t weights[INCSTACK_PROFILE_KINDS_MAX] = {0};
	uint32_t node;
	int error = incstack_meter_snapshot_context(making->snapshot, number, &at);

	if (!error)
		error = find_caller(making, &at, &node);
	if (error)
		return error;
	weights[TIME] = at.own_ns;
	weights[WAITING] = at.waiting_ns;
	weights[MEASURED] = at.measured_ns;
	frame.function = at.function;
	if (!making->describe || making->describe(making->context, &at, &frame)) {
		weights[CALLS] = at.calls;
		error = incstack_profile_add_node(making->profile, node, &frame, &node);
	}
	making->nodes[number] = node;
	return error ? error : incstack__add_to(making->profile, node, weights);
}

static int add_all(struct making *making)
{
	const uint32_t count = count_contexts(making->snapshot);
	int error = 0;

	making->nodes = calloc(count + (size_t)1, sizeof(*making->nodes));
	if (!making->nodes)
		return INCSTACK_ENOMEM;
	for (uint32_t i = 0; i < count && !error; i++)
		error = add_context(making, i);
	free(making->nodes);
	return error;
}

int incstack_profile_create_from_meter(const struct incstack_meter_snapshot *snapshot,
				       incstack_profile_method_fn *describe, void *context,
				       struct incstack_profile **profile)
{
	static const struct incstack_profile_kind kinds[KINDS] = {
		[TIME] = {"time", "nanoseconds"},
		[CALLS] = {"calls", "count"},
		[WAITING] = {"waiting", "nanoseconds"},
		[MEASURED] = {"measured", "nanoseconds"},
	};
	struct making making = {snapshot, describe, context, NULL, NULL};
	int error;

	if (!snapshot || !profile)
		return INCSTACK_EINVAL;
	error = incstack_profile_create(kinds, KINDS, &making.profile);
	if (!error)
		error = add_all(&making);
	if (error)
		incstack_profile_destroy(making.profile);
	else
		*profile = making.profile;
	return error;
}
