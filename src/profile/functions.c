/* SPDX-License-Identifier: MIT
 *
 * Sums the contexts of a profile by function. Recursion counts once.
 */
#include <stdlib.h>

#include "cct.h"

/* Returns the number of a node's function. Frames with the same name are the same function. So
 * are frames without a name that have the same method; the first of them represents all. */
static uint32_t function_of(const struct incstack_profile *profile, uint32_t node,
			    const uint32_t *unnamed)
{
	uint32_t frame = profile->nodes[node].frame, name = profile->frames[frame].name;

	return name != INCSTACK__NONE ? name : unnamed[frame];
}

/* Gives numbers to methods without a name. They follow the numbers of the names. */
static int number_unnamed(const struct incstack_profile *profile, uint32_t *unnamed)
{
	struct incstack__table table;
	int error = incstack__table_init(&table);

	for (uint32_t i = 0; i < profile->frames_used && !error; i++) {
		uint64_t method = profile->frames[i].method;
		uint32_t hash = incstack__hash_pair(method, 0), at;
		size_t cursor = hash;

		if (profile->frames[i].name != INCSTACK__NONE)
			continue;
		while ((at = incstack__table_probe(&table, hash, &cursor)) != INCSTACK__NONE)
			if (profile->frames[at].method == method)
				break;
		unnamed[i] = at != INCSTACK__NONE ? unnamed[at] : (uint32_t)profile->names_used + i;
		if (at == INCSTACK__NONE)
			error = incstack__table_insert(&table, hash, i);
	}
	free(table.slots);
	return error;
}

static bool inside_itself(const struct incstack_profile *profile, uint32_t node,
			  const uint32_t *unnamed)
{
	uint32_t function = function_of(profile, node, unnamed);

	for (node = profile->nodes[node].parent; node != INCSTACK_PROFILE_ROOT;
	     node = profile->nodes[node].parent)
		if (function_of(profile, node, unnamed) == function)
			return true;
	return false;
}

static int compare_functions(const void *a, const void *b)
{
	const struct incstack_profile_function *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return x->total < y->total ? 1 : x->total > y->total ? -1 : 0;
}

static void sum_up(const struct incstack_profile *profile, uint32_t kind, const uint64_t *totals,
		   const uint32_t *unnamed, struct incstack_profile_function *all)
{
	for (uint32_t node = 1; node < profile->nodes_used; node++) {
		uint32_t at = function_of(profile, node, unnamed);

		all[at].self += incstack_profile_self(profile, node, kind);
		if (totals[node] && !inside_itself(profile, node, unnamed))
			all[at].total += totals[node];
		if (at < profile->names_used)
			all[at].name = incstack__text(profile, at);
		else
			all[at].method = profile->frames[profile->nodes[node].frame].method;
	}
}

int incstack_profile_functions(const struct incstack_profile *profile, uint32_t kind,
			       struct incstack_profile_function *functions, size_t *count)
{
	struct incstack_profile_function *all;
	uint64_t *totals;
	uint32_t *unnamed;
	size_t room, kept = 0;
	int error;

	if (!profile || !functions || !count || kind >= profile->kinds)
		return INCSTACK_EINVAL;
	room = profile->names_used + profile->frames_used;
	all = calloc(room + 1, sizeof(*all));
	totals = malloc(profile->nodes_used * sizeof(*totals));
	unnamed = calloc(profile->frames_used + 1, sizeof(*unnamed));
	error = all && totals && unnamed ? number_unnamed(profile, unnamed) : INCSTACK_ENOMEM;
	if (!error) {
		(void)incstack_profile_totals(profile, kind, totals);
		sum_up(profile, kind, totals, unnamed, all);
		qsort(all, room, sizeof(*all), compare_functions);
		for (; kept < *count && kept < room && all[kept].total; kept++)
			functions[kept] = all[kept];
		*count = kept;
	}
	free(all);
	free(totals);
	free(unnamed);
	return error;
}
