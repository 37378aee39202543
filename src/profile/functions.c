/* SPDX-License-Identifier: MIT
 *
 * Sums the contexts of a profile by function. Recursion counts once.
 */
#include <stdlib.h>

#include "cct.h"
#include "analysis.h"

/* Gives a number to the function of each frame: the number of its name or, for functions without a name, a
 * number behind those of the names. */
static int number_frames(const struct incstack_profile *profile, struct incstack__table *unnamed,
			 uint32_t *functions)
{
	int error = 0;

	for (uint32_t i = 0; i < profile->frames_used && !error; i++) {
		uint64_t function = profile->frames[i].function;
		uint32_t hash = incstack__hash_pair(function, 0), at;
		size_t cursor = hash;

		functions[i] = profile->frames[i].name;
		if (functions[i] != INCSTACK__NONE)
			continue;
		while ((at = incstack__table_probe(unnamed, hash, &cursor)) != INCSTACK__NONE)
			if (profile->frames[at].function == function)
				break;
		functions[i] =
			at != INCSTACK__NONE ? functions[at] : (uint32_t)profile->names_used + i;
		if (at == INCSTACK__NONE)
			error = incstack__table_insert(unnamed, hash, i);
	}
	return error;
}

int incstack__frame_functions(const struct incstack_profile *profile, uint32_t **functions)
{
	struct incstack__table unnamed = {0};
	int error = incstack__table_init(&unnamed);

	*functions = calloc(profile->frames_used + 1, sizeof(**functions));
	if (!*functions)
		error = INCSTACK_ENOMEM;
	if (!error)
		error = number_frames(profile, &unnamed, *functions);
	free(unnamed.slots);
	if (error) {
		free(*functions);
		*functions = NULL;
	}
	return error;
}

/* Finds the nodes that are inside of another node of their function. */
static int find_inside(const struct incstack_profile *profile, const uint32_t *functions,
		       bool *inside)
{
	const size_t nodes = profile->nodes_used;
	struct incstack__call *calls = calloc(nodes, sizeof(*calls));
	int error;

	if (!calls)
		return INCSTACK_ENOMEM;
	for (size_t i = 1; i < nodes; i++)
		calls[i] = (struct incstack__call){profile->nodes[i].parent,
						   functions[profile->nodes[i].frame]};
	error = incstack__inside_itself(calls, nodes, profile->names_used + profile->frames_used,
					inside);
	free(calls);
	return error;
}

static int compare_functions(const void *a, const void *b)
{
	const struct incstack__profile_function *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return x->total < y->total ? 1 : x->total > y->total ? -1 : 0;
}

static void sum_up(const struct incstack_profile *profile, uint32_t kind, const uint64_t *totals,
		   const uint32_t *functions, const bool *inside,
		   struct incstack__profile_function *all)
{
	for (uint32_t node = 1; node < profile->nodes_used; node++) {
		uint32_t at = functions[profile->nodes[node].frame];

		all[at].self += incstack__profile_self(profile, node, kind);
		if (totals[node] && !inside[node])
			all[at].total += totals[node];
		if (at < profile->names_used)
			all[at].name = incstack__text(profile, at);
		else
			all[at].function = profile->frames[profile->nodes[node].frame].function;
	}
}

int incstack__profile_functions(const struct incstack_profile *profile, uint32_t kind,
				struct incstack__profile_function *functions, size_t *count)
{
	struct incstack__profile_function *all;
	uint64_t *totals;
	uint32_t *numbers;
	bool *inside;
	size_t room, kept = 0;
	int error;

	if (!profile || !functions || !count || kind >= profile->kinds)
		return INCSTACK_EINVAL;
	room = profile->names_used + profile->frames_used;
	all = calloc(room + 1, sizeof(*all));
	totals = malloc(profile->nodes_used * sizeof(*totals));
	inside = calloc(profile->nodes_used, sizeof(*inside));
	error = incstack__frame_functions(profile, &numbers);
	if (!all || !totals || !inside)
		error = INCSTACK_ENOMEM;
	if (!error)
		error = find_inside(profile, numbers, inside);
	if (!error) {
		(void)incstack_profile_totals(profile, kind, totals);
		sum_up(profile, kind, totals, numbers, inside, all);
		qsort(all, room, sizeof(*all), compare_functions);
		for (; kept < *count && kept < room && all[kept].total; kept++)
			functions[kept] = all[kept];
		*count = kept;
	}
	free(all);
	free(totals);
	free(inside);
	free(numbers);
	return error;
}
