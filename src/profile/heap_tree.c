/* SPDX-License-Identifier: MIT
 *
 * Adds the traces of heap.h. The path of the trace before is remembered with its nodes. Of a trace only the
 * objects above its `old` are new, so the cost depends on the number of objects, not on the depth.
 */
#include <stdbool.h>
#include <stdlib.h>

#include <incstack/profile_heap.h>

#include "cct.h"
#include "named_root.h"

typedef struct incstack_heap_object object;

struct step {
	const object *object;
	uint32_t node; /* NONE: to be looked up */
};

/* The frames of the trace that was added last, the outermost first. */
struct path {
	struct incstack_profile *profile;
	incstack_profile_heap_frame_fn *describe;
	void *context;
	struct step *steps;
	size_t room, depth;
};

/* Finds how many of the remembered frames a trace has in common with the one before: those from its `old` on. The
 * new depth goes to *depth. */
static size_t count_known(const struct path *path, const struct incstack_heap_trace *trace,
			  size_t *depth)
{
	size_t known = trace->old ? path->depth : 0, above = 0;
	const object *o = trace->top;
	while (known && path->steps[known - 1].object != trace->old)
		known--;
	for (; o && !(known && o == trace->old); o = o->parent)
		above++;
	if (!o)
		known = 0;
	*depth = known + above;
	return known;
}

static bool is_alike(const object *a, const object *b)
{
	return a->frame.function == b->frame.function && a->frame.position == b->frame.position &&
	       a->frame.kind == b->frame.kind && a->frame.flags == b->frame.flags;
}

/* Writes the objects of a trace, except those of the known frames. A frame that looks like the one that was there
 * keeps its node for now. */
static void write_objects(struct path *path, const object *top, size_t known, size_t depth)
{
	const object *o = top;
	for (size_t i = depth; i > known; i--, o = o->parent) {
		struct step *step = &path->steps[i - 1];
		if (i > path->depth || !is_alike(step->object, o))
			step->node = INCSTACK_PROFILE_NONE;
		step->object = o;
	}
	path->depth = depth;
}

/* Finds or adds the node of the object below *node, which it becomes. */
static int find_node(const struct path *path, const object *o, uint32_t *node)
{
	const struct incstack_heap_frame *at = &o->frame;
	struct incstack_profile_frame frame = {
		.size = sizeof(frame),
		.function = at->function,
		.position = at->position > INT32_MAX ? -1 : (int32_t)at->position};
	if (path->describe && !path->describe(path->context, at, &frame))
		return 0;
	return incstack_profile_add_node(path->profile, *node, &frame, node);
}

static int find_nodes(struct path *path, size_t known)
{
	uint32_t node = INCSTACK_PROFILE_ROOT;
	bool is_new = false; /* a frame further out differs */
	int error = 0;
	if (known)
		node = path->steps[known - 1].node;
	else if (!(path->steps[0].object->frame.flags & INCSTACK_HEAP_BASE))
		error = incstack__named_root(path->profile, "[truncated]", &node);
	for (size_t i = known; i < path->depth && !error; i++) {
		struct step *step = &path->steps[i];
		is_new |= step->node == INCSTACK_PROFILE_NONE;
		if (is_new) {
			error = find_node(path, step->object, &node);
			step->node = error ? INCSTACK_PROFILE_NONE : node;
		}
		node = step->node;
	}
	return error;
}

static int add_trace(struct path *path, const struct incstack_heap_trace *trace)
{
	const uint64_t weights[INCSTACK_PROFILE_KINDS_MAX] = {1, trace->weight};
	size_t depth, known = count_known(path, trace, &depth);
	if (!trace->top)
		return INCSTACK_EINVAL;
	int error =
		incstack__reserve((void **)&path->steps, &path->room, depth, sizeof(*path->steps));
	if (error)
		return error;
	write_objects(path, trace->top, known, depth);
	error = find_nodes(path, known);
	return error ? error
		     : incstack__add_to(path->profile, path->steps[depth - 1].node, weights);
}

int incstack_profile_add_heap_tree(struct incstack_profile *profile,
				   const struct incstack_heap_tree *tree,
				   incstack_profile_heap_frame_fn *describe, void *context)
{
	struct path path = {.profile = profile, .describe = describe, .context = context};
	int error = 0;
	if (!profile || !tree)
		return INCSTACK_EINVAL;
	for (const struct incstack_heap_trace *t = tree->traces; t && !error; t = t->next)
		error = add_trace(&path, t);
	free(path.steps);
	return error;
}
