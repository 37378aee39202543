/* SPDX-License-Identifier: MIT
 *
 * Adds the traces of mixed.h. The frames of each trace are listed, then looked up from the outermost on. While
 * they are those of the trace before, they have its nodes.
 */
#include <stdbool.h>
#include <stdlib.h>

#include <incstack/profile_heap.h>

#include "cct.h"
#include "named_root.h"

struct step {
	const struct incstack_frame_object *machine;
	const struct incstack_heap_object *heap;
	uint32_t flags; /* INCSTACK_MIXED_* */
	uint32_t node;
};

/* The frames of a trace, the youngest first. */
struct list {
	struct step *steps;
	size_t room, depth;
};

struct fold {
	struct incstack_profile *profile;
	incstack_profile_mixed_frame_fn *describe;
	incstack_mixed_expect_fn *expect;
	void *context;
	struct list now, before;
	uint32_t root, root_before;
};

/* Presets what `describe` may change. */
static struct incstack_profile_frame frame_of(const struct incstack_mixed_frames *at)
{
	const uint32_t kept = INCSTACK_OBJECT_SIGNAL | INCSTACK_OBJECT_RAW;
	if (at->heap) {
		const struct incstack_heap_frame *f = &at->heap->frame;
		return (struct incstack_profile_frame){
			.size = sizeof(struct incstack_profile_frame),
			.function = f->function,
			.position = f->position > INT32_MAX ? -1 : (int32_t)f->position};
	}
	const uint32_t flags = at->machine->flags;
	return (struct incstack_profile_frame){
		.size = sizeof(struct incstack_profile_frame),
		.function = at->machine->function,
		.position = at->machine->position,
		.flags = flags &
			 (flags & INCSTACK_OBJECT_RAW ? kept | INCSTACK_OBJECT_EXACT : kept)};
}

static int push(struct fold *fold, const struct incstack_mixed_frames *at)
{
	struct list *list = &fold->now;
	int error = incstack__reserve((void **)&list->steps, &list->room, list->depth + 1,
				      sizeof(*list->steps));
	if (!error)
		list->steps[list->depth++] =
			(struct step){at->machine, at->heap, at->flags, INCSTACK_PROFILE_NONE};
	return error;
}

/* Finds or adds the root of a trace: a name says what is not known of it. */
static int find_root(struct fold *fold, const struct incstack_mixed_frames *end)
{
	fold->root = INCSTACK_PROFILE_ROOT;
	if (!end->loose && !end->truncated)
		return 0;
	return incstack__named_root(fold->profile, end->loose ? "[order unknown]" : "[truncated]",
				    &fold->root);
}

static int list_frames(struct fold *fold, const struct incstack_mixed_trace *trace)
{
	struct incstack_mixed_frames at;
	int error = incstack_mixed_frames_begin(&at, trace, fold->expect, fold->context);
	fold->now.depth = 0;
	while (!error && incstack_mixed_frames_next(&at))
		error = push(fold, &at);
	return error ? error : find_root(fold, &at);
}

/* Whether the frame `outer` frames from the outermost one is that of the trace before. */
static bool is_known(const struct fold *fold, size_t outer)
{
	if (outer >= fold->before.depth)
		return false;
	const struct step *then = &fold->before.steps[fold->before.depth - 1 - outer];
	const struct step *now = &fold->now.steps[fold->now.depth - 1 - outer];
	return then->machine == now->machine && then->heap == now->heap &&
	       then->flags == now->flags;
}

/* Gives nodes to the frames that the trace has in common with the one before. Returns how many they are. */
static size_t keep_nodes(struct fold *fold, uint32_t *node)
{
	size_t outer = 0;
	*node = fold->root;
	if (fold->root != fold->root_before)
		return 0;
	for (; outer < fold->now.depth && is_known(fold, outer); outer++)
		*node = fold->now.steps[fold->now.depth - 1 - outer].node =
			fold->before.steps[fold->before.depth - 1 - outer].node;
	return outer;
}

/* Finds or adds the node of a frame below *node, which it becomes. */
static int find_node(const struct fold *fold, const struct step *step, uint32_t *node)
{
	const struct incstack_mixed_frames at = {
		.machine = step->machine, .heap = step->heap, .flags = step->flags};
	struct incstack_profile_frame frame = frame_of(&at);
	if (fold->describe && !fold->describe(fold->context, &at, &frame))
		return 0;
	return incstack_profile_add_node(fold->profile, *node, &frame, node);
}

static int add_trace(struct fold *fold, const struct incstack_mixed_trace *trace)
{
	const uint64_t weights[INCSTACK_PROFILE_KINDS_MAX] = {1, trace->weight};
	uint32_t node;
	int error = list_frames(fold, trace);
	if (error)
		return error;
	for (size_t i = fold->now.depth - keep_nodes(fold, &node); i-- > 0 && !error;) {
		struct step *step = &fold->now.steps[i];
		error = find_node(fold, step, &node);
		step->node = node;
	}
	return error ? error : incstack__add_to(fold->profile, node, weights);
}

int incstack_profile_add_mixed_tree(struct incstack_profile *profile,
				    const struct incstack_mixed_tree *tree,
				    incstack_profile_mixed_frame_fn *describe,
				    incstack_mixed_expect_fn *expect, void *context)
{
	struct fold fold = {
		.profile = profile, .describe = describe, .expect = expect, .context = context};
	struct incstack_mixed_trace trace = {0};
	int error = 0, more = 0;
	if (!profile)
		return INCSTACK_EINVAL;
	while (!error && (more = incstack_mixed_tree_next(tree, &trace)) > 0) {
		const struct list spare = fold.before;
		error = add_trace(&fold, &trace);
		fold.before = fold.now;
		fold.root_before = fold.root;
		fold.now = spare;
	}
	free(fold.now.steps);
	free(fold.before.steps);
	return error ? error : more;
}
