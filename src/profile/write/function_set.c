/* SPDX-License-Identifier: MIT
 *
 * A table from name, file and module to the number of a function.
 */
#include <stdlib.h>

#include "function_set.h"

int incstack__function_set_init(struct incstack__function_set *set)
{
	return incstack__table_init(&set->table);
}

void incstack__function_set_free(struct incstack__function_set *set)
{
	free(set->functions);
	free(set->table.slots);
}

static bool same(const struct incstack_profile *profile, uint32_t a, uint32_t b)
{
	const struct incstack__frame *f = &profile->frames[a], *g = &profile->frames[b];

	if (f->name == INCSTACK__NONE)
		return a == b;
	return f->name == g->name && f->file == g->file && f->module == g->module;
}

int incstack__function_of(struct incstack__function_set *set,
			  const struct incstack_profile *profile, uint32_t frame,
			  uint32_t *function)
{
	const struct incstack__frame *f = &profile->frames[frame];
	uint32_t hash = f->name == INCSTACK__NONE
				? incstack__hash_pair(frame, UINT64_MAX)
				: incstack__hash_pair(f->name, (uint64_t)f->module << 32 | f->file);
	size_t cursor = hash;
	int error;

	while ((*function = incstack__table_probe(&set->table, hash, &cursor)) != INCSTACK__NONE)
		if (same(profile, frame, set->functions[*function].frame))
			return 0;
	*function = (uint32_t)set->used;
	error = incstack__reserve((void **)&set->functions, &set->room, set->used + 1,
				  sizeof(*set->functions));
	if (!error)
		error = incstack__table_insert(&set->table, hash, *function);
	if (!error)
		set->functions[set->used++] = (struct incstack__function){.frame = frame};
	return error;
}
