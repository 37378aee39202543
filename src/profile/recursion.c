/* SPDX-License-Identifier: MIT
 *
 * Folds recursion: a call of a function that is among its own callers becomes a part of the youngest of
 * them. A context has then at most as many frames as there are functions.
 */
#include <stdlib.h>

#include "merge.h"

struct folding {
	struct incstack_profile *into;
	const struct incstack_profile *from;
	uint32_t *frames;    /* of `into`, for each frame of `from` */
	uint32_t *functions; /* of `into`, for each of its frames */
	uint32_t *nodes;     /* of `into`, for each node of `from` */
};

/* Returns the node or the youngest of its callers that is of the function; the root if none is. */
static uint32_t find_caller(const struct folding *folding, uint32_t node, uint32_t function)
{
	const struct incstack__node *nodes = folding->into->nodes;

	while (node != INCSTACK_PROFILE_ROOT && folding->functions[nodes[node].frame] != function)
		node = nodes[node].parent;
	return node;
}

static int fold_node(const struct folding *folding, uint32_t number)
{
	const struct incstack__node *n = &folding->from->nodes[number];
	const uint32_t parent = folding->nodes[n->parent], frame = folding->frames[n->frame];
	uint32_t *node = &folding->nodes[number];

	*node = find_caller(folding, parent, folding->functions[frame]);
	return *node != INCSTACK_PROFILE_ROOT
		       ? 0
		       : incstack__node_child(folding->into, parent, frame, node);
}

static int fold(struct folding *folding)
{
	const struct incstack_profile *from = folding->from;
	int error =
		incstack__map_frames(folding->into, from, INCSTACK__SITES_KEPT, folding->frames);

	if (!error)
		error = incstack__frame_functions(folding->into, &folding->functions);
	for (uint32_t i = 1; i < from->nodes_used && !error; i++) {
		error = fold_node(folding, i);
		for (uint32_t k = 0; k < from->kinds && !error; k++)
			error = incstack__node_weigh(folding->into, folding->nodes[i], k,
						     incstack_profile_self(from, i, k));
	}
	return error;
}

int incstack_profile_fold_recursion(const struct incstack_profile *profile,
				    struct incstack_profile **folded)
{
	struct folding folding = {.from = profile};
	int error;

	if (!profile || !folded)
		return INCSTACK_EINVAL;
	error = incstack__create_like(profile, &folding.into);
	if (error)
		return error;
	folding.frames = malloc((profile->frames_used + 1) * sizeof(*folding.frames));
	folding.nodes = calloc(profile->nodes_used, sizeof(*folding.nodes));
	error = folding.frames && folding.nodes ? fold(&folding) : INCSTACK_ENOMEM;
	if (!error)
		error = incstack__copy_meta(profile, folding.into);
	if (!error)
		error = incstack__timeline_copy(profile, folding.nodes, folding.into);
	free(folding.frames);
	free(folding.functions);
	free(folding.nodes);
	folding.into->losses =
		incstack_profile_losses(profile, INCSTACK_FORMAT_SPEEDSCOPE, 0) &
		~(uint32_t)INCSTACK_LOSS_FRAME_KINDS; /* labels, mappings and the like */
	if (error)
		incstack_profile_destroy(folding.into);
	else
		*folded = folding.into;
	return error;
}
