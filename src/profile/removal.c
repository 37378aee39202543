/* SPDX-License-Identifier: MIT
 *
 * Removes nodes, in place: a parent comes before its children, so one pass moves all nodes to the front.
 */
#include "removal.h"
#include "curve.h"

#include <stdlib.h>
#include <string.h>

int incstack__frames_match(const struct incstack_profile *profile,
			   bool (*matches)(const void *context,
					   const struct incstack_profile *profile, uint32_t frame),
			   const void *context, bool **matched)
{
	*matched = calloc(profile->frames_used + 1, sizeof(**matched));
	if (!*matched)
		return INCSTACK_ENOMEM;
	for (uint32_t i = 0; i < profile->frames_used; i++)
		(*matched)[i] = matches(context, profile, i);
	return 0;
}

/* Writes the new number of each node to `numbers`. */
static void move_nodes(struct incstack_profile *profile, const bool *kept, uint32_t *numbers)
{
	uint32_t used = 1;

	numbers[INCSTACK_PROFILE_ROOT] = INCSTACK_PROFILE_ROOT;
	for (uint32_t i = 1; i < profile->nodes_used; i++) {
		const struct incstack__node node = profile->nodes[i];

		numbers[i] = INCSTACK_PROFILE_NONE;
		if (!kept[i])
			continue;
		profile->nodes[used] = (struct incstack__node){numbers[node.parent], node.frame};
		memmove(profile->weights + (size_t)used * profile->kinds,
			profile->weights + (size_t)i * profile->kinds,
			profile->kinds * sizeof(*profile->weights));
		numbers[i] = used++;
	}
	profile->nodes_used = used;
}

int incstack__nodes_remove(struct incstack_profile *profile, const bool *kept,
			   const uint32_t *stands_for)
{
	const uint32_t before = (uint32_t)profile->nodes_used;
	uint32_t *numbers = malloc(before * sizeof(*numbers));
	uint32_t *moved = malloc(before * sizeof(*moved));

	if (numbers && moved) {
		move_nodes(profile, kept, numbers);
		for (uint32_t i = 0; i < before; i++)
			moved[i] = stands_for[i] == INCSTACK_PROFILE_NONE ? INCSTACK_PROFILE_NONE
									  : numbers[stands_for[i]];
		incstack__timeline_move(profile, moved);
		incstack__curve_move(profile, moved);
		incstack__node_table_renew(profile);
	}
	free(numbers);
	free(moved);
	return numbers && moved ? 0 : INCSTACK_ENOMEM;
}
