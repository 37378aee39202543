/* SPDX-License-Identifier: MIT
 *
 * From traces to the tree. Traces share frame objects, so each object is turned
 * into a node once and remembered: the cost is that of the objects, not that of
 * samples times depth.
 */
#include <stdlib.h>

#include "cct.h"

struct memo {
	const struct incstack_frame_object *object;
	uint32_t node;
};

struct fold {
	struct incstack_profile *profile;
	struct memo *memo; /* open addressing by the object's address */
	size_t mask, used;
	const struct incstack_frame_object **path; /* objects still to fold */
	size_t path_room, depth;
};

static struct memo *memo_slot(const struct fold *fold, const struct incstack_frame_object *object)
{
	size_t at = incstack__hash_pair((uintptr_t)object, 0);

	while (fold->memo[at & fold->mask].object && fold->memo[at & fold->mask].object != object)
		at++;
	return &fold->memo[at & fold->mask];
}

static int memo_grow(struct fold *fold, size_t slots)
{
	struct fold old = *fold;

	fold->memo = calloc(slots, sizeof(*fold->memo));
	if (!fold->memo) {
		fold->memo = old.memo;
		return INCSTACK_ENOMEM;
	}
	fold->mask = slots - 1;
	for (size_t i = 0; old.memo && i <= old.mask; i++)
		if (old.memo[i].object)
			*memo_slot(fold, old.memo[i].object) = old.memo[i];
	free(old.memo);
	return 0;
}

static int memo_put(struct fold *fold, const struct incstack_frame_object *object, uint32_t node)
{
	if (fold->used >= (fold->mask + 1) / 2) {
		int error = memo_grow(fold, (fold->mask + 1) * 2);

		if (error)
			return error;
	}
	*memo_slot(fold, object) = (struct memo){.object = object, .node = node};
	fold->used++;
	return 0;
}

static int truncated_node(struct incstack_profile *profile, uint32_t *node)
{
	static const char text[] = "[truncated]";
	uint32_t frame;
	int error = incstack__frame_named(profile, text, sizeof(text) - 1, -1, 0, &frame);

	return error ? error : incstack__node_child(profile, INCSTACK_PROFILE_ROOT, frame, node);
}

/* Below what the outermost known object hangs. */
static int origin(struct incstack_profile *profile, const struct incstack_frame_object *outermost,
		  uint32_t *node)
{
	*node = INCSTACK_PROFILE_ROOT;
	if (outermost->flags & INCSTACK_OBJECT_BASE)
		return 0;
	return truncated_node(profile, node);
}

/* What the frame is, without what only tells how it was recorded. EXACT changes
 * the meaning of a raw pc and of nothing else. */
static int object_frame(struct incstack_profile *profile,
			const struct incstack_frame_object *object, uint32_t *frame)
{
	uint32_t kept = INCSTACK_OBJECT_VIRTUAL | INCSTACK_OBJECT_SIGNAL | INCSTACK_OBJECT_RAW;

	if (object->flags & INCSTACK_OBJECT_RAW)
		kept |= INCSTACK_OBJECT_EXACT;
	return incstack__frame_intern(profile,
				      &(struct incstack__frame){.method = object->method,
								.bci = object->bci,
								.flags = object->flags & kept,
								.key = INCSTACK__NONE},
				      frame);
}

/* A skeleton says nothing of its frame: its callees hang where it would. */
static int object_child(struct incstack_profile *profile,
			const struct incstack_frame_object *object, uint32_t *node)
{
	uint32_t frame;
	int error;

	if (!(object->flags & INCSTACK_OBJECT_FILLED))
		return 0;
	error = object_frame(profile, object, &frame);
	return error ? error : incstack__node_child(profile, *node, frame, node);
}

static int path_push(struct fold *fold, const struct incstack_frame_object *object)
{
	int error = incstack__reserve((void **)&fold->path, &fold->path_room, fold->depth + 1,
				      sizeof(*fold->path));

	if (!error)
		fold->path[fold->depth++] = object;
	return error;
}

/* Climbs from top to the first object that has a node, or out of the trace. */
static int climb(struct fold *fold, const struct incstack_frame_object *top, uint32_t *node)
{
	fold->depth = 0;
	for (const struct incstack_frame_object *o = top; o; o = o->parent) {
		const struct memo *known = memo_slot(fold, o);
		int error;

		if (known->object) {
			*node = known->node;
			return 0;
		}
		error = path_push(fold, o);
		if (error)
			return error;
	}
	return origin(fold->profile, fold->path[fold->depth - 1], node);
}

static int top_node(struct fold *fold, const struct incstack_frame_object *top, uint32_t *node)
{
	int error = climb(fold, top, node);

	while (!error && fold->depth) {
		const struct incstack_frame_object *object = fold->path[--fold->depth];

		error = object_child(fold->profile, object, node);
		if (!error)
			error = memo_put(fold, object, *node);
	}
	return error;
}

static int weigh_node(struct incstack_profile *profile, uint32_t node, const uint64_t *weights)
{
	for (uint32_t kind = 0; kind < profile->kinds; kind++)
		if (weights[kind] > (uint64_t)INT64_MAX - profile->total[kind])
			return INCSTACK_ERANGE;
	for (uint32_t kind = 0; kind < profile->kinds; kind++)
		(void)incstack__node_weigh(profile, node, kind, weights[kind]);
	return 0;
}

static void weigh_default(void *context, const struct incstack_trace *trace, uint64_t *weights)
{
	uint32_t kinds = *(const uint32_t *)context;

	weights[0] = 1;
	if (kinds > 1)
		weights[1] = trace->weight;
}

static int fold_traces(struct fold *fold, const struct incstack_tree *tree,
		       incstack_profile_weigh_fn *weigh, void *context)
{
	for (const struct incstack_trace *t = tree->traces; t; t = t->next) {
		uint64_t weights[INCSTACK_PROFILE_KINDS_MAX] = {0};
		uint32_t node;
		int error;

		if (!t->top)
			return INCSTACK_EINVAL;
		weigh(context, t, weights);
		error = top_node(fold, t->top, &node);
		if (!error)
			error = weigh_node(fold->profile, node, weights);
		if (error)
			return error;
	}
	return 0;
}

int incstack_profile_add_tree(struct incstack_profile *profile, const struct incstack_tree *tree,
			      incstack_profile_weigh_fn *weigh, void *context)
{
	struct fold fold = {.profile = profile};
	size_t slots = 64;
	int error;

	if (!profile || !tree)
		return INCSTACK_EINVAL;
	while (slots / 2 < tree->objects && slots < (size_t)1 << 24)
		slots *= 2;
	error = memo_grow(&fold, slots);
	if (!error)
		error = weigh ? fold_traces(&fold, tree, weigh, context)
			      : fold_traces(&fold, tree, weigh_default, &profile->kinds);
	free(fold.memo);
	free(fold.path);
	return error;
}

int incstack_profile_add_trace(struct incstack_profile *profile, const struct incstack_trace *trace,
			       const uint64_t *weights)
{
	struct fold fold = {.profile = profile};
	uint32_t node = INCSTACK_PROFILE_ROOT;
	int error = 0;

	if (!profile || !trace || !trace->top || !weights)
		return INCSTACK_EINVAL;
	for (const struct incstack_frame_object *o = trace->top; o && !error; o = o->parent)
		error = path_push(&fold, o);
	if (!error)
		error = origin(profile, fold.path[fold.depth - 1], &node);
	while (!error && fold.depth)
		error = object_child(profile, fold.path[--fold.depth], &node);
	if (!error)
		error = weigh_node(profile, node, weights);
	free(fold.path);
	return error;
}
