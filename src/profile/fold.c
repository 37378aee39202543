/* SPDX-License-Identifier: MIT
 *
 * Adds traces to the tree. A trace shares the objects of its outer frames with the previous
 * trace. So the path of the previous trace is remembered with its nodes, and only the objects
 * above the first shared one are looked up. The cost depends on the number of objects, not on
 * the number of samples times their depth.
 */
#include <stdlib.h>
#include <string.h>

#include "cct.h"

struct step {
	const struct incstack_frame_object *object;
	uint32_t node;
};

struct fold {
	struct incstack_profile *profile;
	uint32_t root;    /* the node that is the parent of outermost frames */
	struct step *way; /* the path of the last trace, outermost first */
	size_t way_room, length;
	const struct incstack_frame_object **path; /* objects that have no node yet */
	size_t path_room, depth;
};

/* Whether the object is on the remembered path. If so, the path is cut above it. Frames lie on a
 * stack in order, so a trace that has met the object has no younger objects further out.
 * Inlined frames share an address. If addresses are in no order (traces over several stacks),
 * objects are looked up again, and lead to the same nodes. */
static bool way_meets(struct fold *fold, const struct incstack_frame_object *object)
{
	const struct step *way = fold->way;
	size_t at = fold->length;

	while (at && way[at - 1].object->address < object->address)
		at--;
	fold->length = at;
	for (; at && way[at - 1].object->address == object->address; at--)
		if (way[at - 1].object == object) {
			fold->length = at;
			return true;
		}
	return false;
}

static int way_push(struct fold *fold, const struct incstack_frame_object *object, uint32_t node)
{
	int error = incstack__reserve((void **)&fold->way, &fold->way_room, fold->length + 1,
				      sizeof(*fold->way));

	if (!error)
		fold->way[fold->length++] = (struct step){.object = object, .node = node};
	return error;
}

/* Finds or adds the child of `parent` whose frame is only a name. */
static int named_node(struct incstack_profile *profile, uint32_t parent, const char *name,
		      uint32_t *node)
{
	uint32_t frame;
	int error = incstack__frame_named(profile, name, strlen(name), &frame);

	return error ? error : incstack__node_child(profile, parent, frame, node);
}

/* Finds the parent of the outermost known object: the root, or a node for unknown callers. */
static int origin(const struct fold *fold, const struct incstack_frame_object *outermost,
		  uint32_t *node)
{
	*node = fold->root;
	if (outermost->flags & INCSTACK_OBJECT_BASE)
		return 0;
	return named_node(fold->profile, fold->root, "[truncated]", node);
}

/* Returns the flags of an object without those that tell how it was recorded. EXACT changes the
 * meaning of a raw pc only. A VIRTUAL object shares its callee's address, because the callee is
 * inlined into it. A VIRTUAL frame is inlined itself. */
static uint32_t flags_of(const struct incstack_frame_object *object)
{
	uint32_t flags, kept = INCSTACK_OBJECT_SIGNAL | INCSTACK_OBJECT_RAW;

	if (object->flags & INCSTACK_OBJECT_RAW)
		kept |= INCSTACK_OBJECT_EXACT;
	flags = object->flags & kept;
	if (object->parent)
		flags |= object->parent->flags & INCSTACK_OBJECT_VIRTUAL;
	return flags;
}

/* Finds or adds the frame, and remembers it. */
__attribute__((noinline)) static int look_up(struct incstack_profile *profile,
					     struct incstack__seen *seen, uint32_t *frame)
{
	const struct incstack__frame key = {.function = seen->function,
					    .position = seen->position,
					    .flags = seen->flags,
					    .key = INCSTACK__NONE};
	int error = incstack__frame_intern(profile, &key, frame);

	seen->frame_plus_one = error ? 0 : *frame + 1;
	return error;
}

/* Finds or adds the frame of an object. Traces that follow each other have many frames in common,
 * whose numbers are taken from the table of those that were looked up lately. */
static int object_frame(struct incstack_profile *profile,
			const struct incstack_frame_object *object, uint32_t *frame)
{
	const uint64_t function = object->function;
	const int32_t position = object->position;
	const uint32_t flags = flags_of(object);
	struct incstack__seen *seen =
		&profile->seen[(function ^ function >> 5 ^ (uint32_t)position * 5) %
			       INCSTACK__SEEN];

	if (seen->frame_plus_one && seen->function == function && seen->position == position &&
	    seen->flags == flags) {
		*frame = seen->frame_plus_one - 1;
		return 0;
	}
	*seen = (struct incstack__seen){function, position, flags, 0};
	return look_up(profile, seen, frame);
}

/* Finds or adds the node of an object below its caller's. A skeleton has no node: its callees are
 * children of its caller. */
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

/* Goes from the top to the first object that has a node, or to the end of the trace. */
static int climb(struct fold *fold, const struct incstack_frame_object *top, uint32_t *node)
{
	fold->depth = 0;
	for (const struct incstack_frame_object *o = top; o; o = o->parent) {
		int error;

		if (way_meets(fold, o)) {
			*node = fold->way[fold->length - 1].node;
			return 0;
		}
		error = path_push(fold, o);
		if (error)
			return error;
	}
	fold->length = 0;
	return origin(fold, fold->path[fold->depth - 1], node);
}

static int top_node(struct fold *fold, const struct incstack_frame_object *top, uint32_t *node)
{
	int error = climb(fold, top, node);

	while (!error && fold->depth) {
		const struct incstack_frame_object *object = fold->path[--fold->depth];

		error = object_child(fold->profile, object, node);
		if (!error)
			error = way_push(fold, object, *node);
	}
	return error;
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
			error = incstack_profile_add_weights(fold->profile, node, weights);
		if (error)
			return error;
	}
	return 0;
}

int incstack_profile_add_tree(struct incstack_profile *profile, uint32_t parent,
			      const struct incstack_tree *tree, incstack_profile_weigh_fn *weigh,
			      void *context)
{
	struct fold fold = {.profile = profile, .root = parent};
	int error;

	if (!profile || !tree || parent >= profile->nodes_used)
		return INCSTACK_EINVAL;
	error = weigh ? fold_traces(&fold, tree, weigh, context)
		      : fold_traces(&fold, tree, weigh_default, &profile->kinds);
	free(fold.way);
	free(fold.path);
	return error;
}
