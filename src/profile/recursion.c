/* SPDX-License-Identifier: MIT
 *
 * Folds recursion: a call of a function that is among its own callers becomes a part of the youngest of
 * them. A context has then at most as many frames as there are functions. One visit to each node, whatever
 * the depth is.
 */
#include <stdlib.h>

#include "merge.h"
#include "reduce.h"
#include "files.h"

/* What a visit to a node has changed, for the end of the visit. */
struct undo {
	uint32_t depth;
	uint32_t node, at; /* what was in path[depth + 1], and in at[] of the function */
	bool is_folded;    /* then only `depth` has changed */
};

struct folding {
	struct incstack_profile *into;
	const struct incstack_profile *from;
	uint32_t *frames;             /* of `into`, for each frame of `from` */
	struct incstack__call *calls; /* of `from`, with functions of `into` */
	uint32_t *functions;          /* of `into`, for each of its frames */
	uint32_t *nodes;              /* of `into`, for each node of `from` */
	uint32_t *path;               /* the nodes of `into` on the way to the folded context */
	uint32_t depth;               /* of the folded context: path[depth] is its node */
	uint32_t *at;                 /* the depth at which each function was put last; 0: never */
	struct undo *undo;            /* for each node of `from` */
};

/* Returns the depth of the function's call on the way to the context, or 0. What was put deeper than the
 * context's end, or was replaced since, does not count. */
static uint32_t depth_of(const struct folding *f, uint32_t function)
{
	const uint32_t depth = f->at[function];
	const uint32_t frame = f->into->nodes[f->path[depth]].frame;

	return depth && depth <= f->depth && f->functions[frame] == function ? depth : 0;
}

static int extend(struct folding *f, uint32_t number, uint32_t function)
{
	const uint32_t frame = f->frames[f->from->nodes[number].frame];
	uint32_t node;
	int error = incstack__node_child(f->into, f->path[f->depth], frame, &node);

	if (error)
		return error;
	f->depth++;
	f->undo[number].node = f->path[f->depth];
	f->undo[number].at = f->at[function];
	f->path[f->depth] = node;
	f->at[function] = f->depth;
	return 0;
}

static int enter(void *context, uint32_t number)
{
	struct folding *f = context;
	const uint32_t function = f->calls[number].function, depth = depth_of(f, function);
	int error = 0;

	f->undo[number] = (struct undo){.depth = f->depth, .is_folded = depth != 0};
	if (depth)
		f->depth = depth;
	else
		error = extend(f, number, function);
	f->nodes[number] = f->path[f->depth];
	for (uint32_t k = 0; k < f->from->kinds && !error; k++)
		error = incstack__node_weigh(f->into, f->nodes[number], k,
					     incstack__profile_self(f->from, number, k));
	return error;
}

static void leave(void *context, uint32_t number)
{
	struct folding *f = context;
	const struct undo *undo = &f->undo[number];

	f->depth = undo->depth;
	if (undo->is_folded)
		return;
	f->path[undo->depth + 1] = undo->node;
	f->at[f->calls[number].function] = undo->at;
}

static int fold(struct folding *f)
{
	const struct incstack__visitor visitor = {enter, leave, f};
	const struct incstack_profile *from = f->from;
	int error = incstack__map_frames(f->into, from, INCSTACK__SITES_KEPT, f->frames);

	if (!error)
		error = incstack__frame_functions(f->into, &f->functions);
	if (error)
		return error;
	f->at = calloc(f->into->names_used + f->into->frames_used, sizeof(*f->at));
	if (!f->at)
		return INCSTACK_ENOMEM;
	for (uint32_t i = 1; i < from->nodes_used; i++)
		f->calls[i] = (struct incstack__call){
			from->nodes[i].parent, f->functions[f->frames[from->nodes[i].frame]]};
	return incstack__calls_visit(f->calls, from->nodes_used, &visitor);
}

static int allocate(struct folding *f)
{
	const size_t nodes = f->from->nodes_used;

	f->frames = malloc((f->from->frames_used + 1) * sizeof(*f->frames));
	f->calls = calloc(nodes, sizeof(*f->calls));
	f->nodes = calloc(nodes, sizeof(*f->nodes));
	f->path = calloc(nodes + 1, sizeof(*f->path));
	f->undo = calloc(nodes, sizeof(*f->undo));
	return f->frames && f->calls && f->nodes && f->path && f->undo ? 0 : INCSTACK_ENOMEM;
}

static void release(struct folding *f)
{
	free(f->frames);
	free(f->calls);
	free(f->functions);
	free(f->nodes);
	free(f->path);
	free(f->at);
	free(f->undo);
}

int incstack__profile_fold_recursion(const struct incstack_profile *profile,
				     struct incstack_profile **folded)
{
	struct folding folding = {.from = profile};
	int error;

	if (!profile || !folded)
		return INCSTACK_EINVAL;
	error = incstack__create_like(profile, &folding.into);
	if (error)
		return error;
	error = allocate(&folding);
	if (!error)
		error = fold(&folding);
	if (!error)
		error = incstack__copy_meta(profile, folding.into);
	if (!error)
		error = incstack__timeline_copy(profile, folding.nodes, folding.into);
	if (!error)
		error = incstack__curve_copy(profile, folding.nodes, folding.into);
	release(&folding);
	folding.into->losses = incstack__profile_losses(profile, INCSTACK_FORMAT_SPEEDSCOPE, 0) &
			       ~(uint32_t)(INCSTACK__LOSS_FRAME_KINDS | INCSTACK__LOSS_MAPPINGS);
	if (error)
		incstack_profile_destroy(folding.into);
	else
		*folded = folding.into;
	return error;
}
