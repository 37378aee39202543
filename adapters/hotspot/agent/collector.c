/* SPDX-License-Identifier: MIT
 *
 * Collects walks and trees in one profile. If there is no memory, a sample is lost and counted.
 */
#include "collector.h"
#include "profile/reduce.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const struct incstack_profile_kind kinds[] = {{"samples", "count"}};

/* A node takes up to 58 bytes: itself, its weight and its slots, in arrays of which a half may be
 * free. A second profile exists while names are looked up. One tree may bring many nodes at once. What
 * the file takes while it is written, and traces on their way here, take the rest. */
enum { NODE_BYTES = 288, LEAST_NODES = 1024 };

uint64_t agent_counts_lost(const struct agent_counts *counts)
{
	uint64_t sum = 0;

	for (int why = 0; why < AGENT_LOSS_COUNT; why++)
		sum += counts->lost[why];
	return sum;
}

void agent_counts_add(struct agent_counts *sum, const struct agent_counts *more)
{
	sum->traces += more->traces;
	for (int why = 0; why < AGENT_LOSS_COUNT; why++)
		sum->lost[why] += more->lost[why];
	sum->truncated += more->truncated;
	sum->depth_sum += more->depth_sum;
	sum->popped_sum += more->popped_sum;
	sum->popped_count += more->popped_count;
}

static uint32_t nodes_for(uint64_t memory)
{
	uint64_t nodes = memory / NODE_BYTES;

	if (nodes < LEAST_NODES)
		return LEAST_NODES;
	return nodes < INCSTACK_PROFILE_NONE ? (uint32_t)nodes : INCSTACK_PROFILE_NONE - 1;
}

bool agent_collector_open(struct agent_collector *collector, uint64_t memory)
{
	*collector = (struct agent_collector){.lock = PTHREAD_MUTEX_INITIALIZER,
					      .nodes_max = nodes_for(memory)};
	return !incstack_profile_create(kinds, 1, &collector->profile);
}

void agent_collector_close(struct agent_collector *collector)
{
	incstack_profile_destroy(collector->profile);
	free(collector->objects);
	free(collector->way);
	collector->profile = NULL;
	collector->objects = NULL;
	collector->way = NULL;
	collector->objects_room = collector->way_room = 0;
}

static bool make_room(void **array, size_t *room, size_t need, size_t element)
{
	size_t more = *room ? *room : 64;
	void *made;

	if (need <= *room)
		return true;
	while (more < need)
		more *= 2;
	made = realloc(*array, more * element);
	if (!made)
		return false;
	*array = made;
	*room = more;
	return true;
}

static void weigh(void *context, const struct incstack_trace *trace, uint64_t *weights)
{
	(void)trace;
	weights[0] = 1;
	++*(uint64_t *)context;
}

/* Returns how many traces are in the profile now: all, or those before the one for which
 * there was no memory. */
static uint64_t add_tree(struct agent_collector *collector, const char *root,
			 const struct incstack_tree *tree)
{
	struct incstack_profile *profile = collector->profile;
	uint32_t parent = INCSTACK_PROFILE_ROOT;
	uint64_t begun = 0;
	int error = 0;

	if (!profile)
		return 0;
	if (root && *root) {
		const struct incstack_profile_frame frame = {
			.size = sizeof(frame), .name = root, .name_length = strlen(root)};

		error = incstack_profile_add_node(profile, parent, &frame, &parent);
	}
	if (!error)
		error = incstack_profile_add_tree(profile, parent, tree, weigh, &begun);
	/* Without memory to fold, the profile may still grow until it gets none, either. */
	if (incstack_profile_nodes(profile) > collector->nodes_max)
		(void)incstack__profile_shrink(profile, collector->nodes_max / 2);
	return error && begun ? begun - 1 : begun;
}

/* ---- full walks ---- */

/* Returns how many of the outermost frames are the same. */
static uint32_t common_frames(const struct agent_last_walk *last, const struct agent_frame *frames,
			      uint32_t count)
{
	uint32_t common = 0, most = last->count < count ? last->count : count;

	while (common < most &&
	       last->frames[last->count - 1 - common].method == frames[count - 1 - common].method &&
	       last->frames[last->count - 1 - common].bci == frames[count - 1 - common].bci)
		common++;
	return common;
}

/* Remembers the walk. If there is no memory, the next one has nothing to be compared with. */
static void remember(struct agent_counts *counts, struct agent_last_walk *last,
		     const struct agent_frame *frames, uint32_t count)
{
	size_t room = last->room;
	uint32_t common = common_frames(last, frames, count);

	if (last->count) {
		counts->popped_sum += last->count - common;
		counts->popped_count++;
	}
	last->count = 0;
	if (!make_room((void **)&last->frames, &room, count, sizeof(*frames)))
		return;
	last->room = (uint32_t)room;
	memcpy(last->frames, frames, count * sizeof(*frames));
	last->count = count;
}

void agent_last_walk_free(struct agent_last_walk *last)
{
	free(last->frames);
	*last = (struct agent_last_walk){0};
}

/* Makes frame objects. Their addresses only have to be in order, as on a stack. */
static void make_objects(struct incstack_frame_object *objects, const struct agent_frame *frames,
			 uint32_t count, bool truncated)
{
	for (uint32_t i = 0; i < count; i++)
		objects[i] = (struct incstack_frame_object){.parent = &objects[i + 1],
							    .function = frames[i].method,
							    .address = i + 1,
							    .position = frames[i].bci,
							    .flags = INCSTACK_OBJECT_FILLED};
	objects[count - 1].parent = NULL;
	objects[count - 1].flags |= truncated ? INCSTACK_OBJECT_TRUNCATED : INCSTACK_OBJECT_BASE;
}

static bool add_walk(struct agent_collector *collector, const char *root,
		     const struct agent_frame *frames, uint32_t count, bool truncated)
{
	struct incstack_trace trace = {.weight = 1};
	struct incstack_tree tree = {.traces = &trace, .count = 1, .objects = count};

	if (!make_room((void **)&collector->objects, &collector->objects_room, count,
		       sizeof(*collector->objects)))
		return false;
	make_objects(collector->objects, frames, count, truncated);
	trace.top = collector->objects;
	return add_tree(collector, root, &tree) == 1;
}

void agent_collector_walk(struct agent_collector *collector, const char *root,
			  const struct agent_frame *frames, uint32_t count, bool truncated,
			  struct agent_last_walk *last)
{
	pthread_mutex_lock(&collector->lock);
	if (!add_walk(collector, root, frames, count, truncated)) {
		collector->counts.lost[AGENT_LOSS_MEMORY]++;
	} else {
		collector->counts.traces++;
		collector->counts.truncated += truncated;
		collector->counts.depth_sum += count;
		if (last)
			remember(&collector->counts, last, frames, count);
	}
	pthread_mutex_unlock(&collector->lock);
}

/* ---- trees ---- */

/* Whether the path, outermost first, contains the object. If so, the path is cut after it. The
 * objects of one stack are ordered by address; inlined frames share one address. */
static bool way_has(struct agent_collector *collector, size_t *length,
		    const struct incstack_frame_object *object)
{
	size_t at = *length;

	while (at && collector->way[at - 1]->address < object->address)
		at--;
	*length = at;
	for (; at && collector->way[at - 1]->address == object->address; at--)
		if (collector->way[at - 1] == object) {
			*length = at;
			return true;
		}
	return false;
}

/* Replaces the path by that of the trace, whose depth becomes *length. Returns how many frames it
 * shares with the previous trace, or -1 if there is no memory. */
static int64_t follow(struct agent_collector *collector, size_t *length,
		      const struct incstack_frame_object *top)
{
	const struct incstack_frame_object *object = top;
	size_t fresh = 0, shared;

	for (; object && !way_has(collector, length, object); object = object->parent)
		fresh++;
	shared = object ? *length : 0;
	if (!make_room((void **)&collector->way, &collector->way_room, shared + fresh,
		       sizeof(*collector->way)))
		return -1;
	*length = shared + fresh;
	object = top;
	for (size_t at = *length; at > shared; object = object->parent)
		collector->way[--at] = object;
	return (int64_t)shared;
}

/* Measures the depths of the first `count` traces. */
static void measure(struct agent_collector *collector, const struct incstack_tree *tree,
		    uint64_t count)
{
	struct agent_counts *counts = &collector->counts;
	size_t length = 0;

	for (const struct incstack_trace *t = tree->traces; count; t = t->next, count--) {
		size_t before = length;
		int64_t shared = follow(collector, &length, t->top);

		if (shared < 0)
			return;
		counts->depth_sum += length;
		if (t == tree->traces)
			continue;
		counts->popped_sum += before - (size_t)shared;
		counts->popped_count++;
	}
}

void agent_collector_tree(struct agent_collector *collector, const char *root,
			  const struct incstack_tree *tree)
{
	uint64_t added;

	pthread_mutex_lock(&collector->lock);
	added = add_tree(collector, root, tree);
	collector->counts.traces += added;
	collector->counts.lost[AGENT_LOSS_MEMORY] += tree->count - added;
	collector->counts.truncated += tree->truncated;
	measure(collector, tree, added);
	pthread_mutex_unlock(&collector->lock);
}

/* ---- the rest ---- */

void agent_collector_lose(struct agent_collector *collector, enum agent_loss why, uint64_t samples)
{
	atomic_fetch_add_explicit(&collector->lost[why], samples, memory_order_relaxed);
}

/* Moves the losses that were counted without the lock to the others. Called under the lock. */
static void gather_losses(struct agent_collector *collector)
{
	for (int why = 0; why < AGENT_LOSS_COUNT; why++)
		collector->counts.lost[why] +=
			atomic_exchange_explicit(&collector->lost[why], 0, memory_order_relaxed);
}

struct incstack_profile *agent_collector_take(struct agent_collector *collector, bool last,
					      struct agent_counts *counts)
{
	struct incstack_profile *taken = NULL, *fresh = NULL;

	pthread_mutex_lock(&collector->lock);
	gather_losses(collector);
	*counts = collector->counts;
	if (last || !incstack_profile_create(kinds, 1, &fresh)) {
		taken = collector->profile;
		collector->profile = fresh;
		collector->counts = (struct agent_counts){0};
	}
	pthread_mutex_unlock(&collector->lock);
	return taken;
}

int agent_collector_read(struct agent_collector *collector,
			 int (*read)(void *context, const struct incstack_profile *profile,
				     const struct agent_counts *counts),
			 void *context)
{
	int error = INCSTACK_EINVAL;

	pthread_mutex_lock(&collector->lock);
	gather_losses(collector);
	if (collector->profile)
		error = read(context, collector->profile, &collector->counts);
	pthread_mutex_unlock(&collector->lock);
	return error;
}
