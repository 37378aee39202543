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

/* What all sums of a profile need. */
struct summing {
	const struct incstack_profile *profile;
	uint32_t *numbers; /* of the function of each frame */
	bool *inside;      /* whether a node is inside of another node of its function */
	uint64_t *totals;  /* of the nodes */
	size_t room;       /* numbers are below */
};

static void summing_end(struct summing *s)
{
	free(s->numbers);
	free(s->inside);
	free(s->totals);
}

/* Ends it, too, if it fails. */
static int summing_begin(const struct incstack_profile *profile, struct summing *s)
{
	int error;

	*s = (struct summing){.profile = profile,
			      .room = profile->names_used + profile->frames_used};
	s->inside = calloc(profile->nodes_used, sizeof(*s->inside));
	s->totals = malloc(profile->nodes_used * sizeof(*s->totals));
	error = incstack__frame_functions(profile, &s->numbers);
	if (!s->inside || !s->totals)
		error = INCSTACK_ENOMEM;
	if (!error)
		error = find_inside(profile, s->numbers, s->inside);
	if (error)
		summing_end(s);
	return error;
}

static uint32_t function_of(const struct summing *s, uint32_t node)
{
	return s->numbers[s->profile->nodes[node].frame];
}

static const char *name_of(const struct summing *s, uint32_t number)
{
	return number < s->profile->names_used ? incstack__text(s->profile, number) : NULL;
}

/* ---- one kind -------------------------------------------------------------------- */

static int compare_functions(const void *a, const void *b)
{
	const struct incstack__profile_function *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return x->total < y->total ? 1 : x->total > y->total ? -1 : 0;
}

static void sum_up(const struct summing *s, uint32_t kind, struct incstack__profile_function *all)
{
	const struct incstack_profile *profile = s->profile;

	(void)incstack_profile_totals(profile, kind, s->totals);
	for (uint32_t node = 1; node < profile->nodes_used; node++) {
		struct incstack__profile_function *of = &all[function_of(s, node)];

		of->self += incstack__profile_self(profile, node, kind);
		if (!s->inside[node])
			of->total += s->totals[node];
		of->name = name_of(s, function_of(s, node));
		if (!of->name)
			of->function = profile->frames[profile->nodes[node].frame].function;
	}
}

int incstack__profile_functions(const struct incstack_profile *profile, uint32_t kind,
				struct incstack__profile_function *functions, size_t *count)
{
	struct incstack__profile_function *all;
	struct summing s;
	size_t kept = 0;
	int error;

	if (!profile || !functions || !count || kind >= profile->kinds)
		return INCSTACK_EINVAL;
	error = summing_begin(profile, &s);
	if (error)
		return error;
	all = calloc(s.room + 1, sizeof(*all));
	if (all) {
		sum_up(&s, kind, all);
		qsort(all, s.room, sizeof(*all), compare_functions);
		for (; kept < *count && kept < s.room && all[kept].total; kept++)
			functions[kept] = all[kept];
		*count = kept;
	}
	free(all);
	summing_end(&s);
	return all ? 0 : INCSTACK_ENOMEM;
}

/* ---- all kinds ------------------------------------------------------------------- */

/* Gives a row to each function that has a node. rows[] has the number of the row + 1. */
static void make_rows(const struct summing *s, uint32_t *rows, struct incstack__profile_sums *sums)
{
	const struct incstack_profile *profile = s->profile;

	for (uint32_t node = 1; node < profile->nodes_used; node++) {
		const uint32_t number = function_of(s, node);

		if (rows[number])
			continue;
		sums->rows[sums->count] = (struct incstack__profile_sum){
			.name = name_of(s, number),
			.function = profile->frames[profile->nodes[node].frame].function};
		rows[number] = (uint32_t)++sums->count;
	}
}

static void sum_kind(const struct summing *s, uint32_t kind, const uint32_t *rows,
		     struct incstack__profile_sum *sums)
{
	(void)incstack_profile_totals(s->profile, kind, s->totals);
	for (uint32_t node = 1; node < s->profile->nodes_used; node++) {
		struct incstack__profile_sum *sum = &sums[rows[function_of(s, node)] - 1];

		sum->own[kind] += incstack__profile_self(s->profile, node, kind);
		if (!s->inside[node])
			sum->total[kind] += s->totals[node];
	}
}

int incstack__profile_sums(const struct incstack_profile *profile,
			   struct incstack__profile_sums *sums)
{
	struct summing s;
	uint32_t *rows;
	int error;

	if (!profile || !sums)
		return INCSTACK_EINVAL;
	*sums = (struct incstack__profile_sums){0};
	error = summing_begin(profile, &s);
	if (error)
		return error;
	rows = calloc(s.room + 1, sizeof(*rows));
	sums->rows = calloc((s.room < profile->nodes_used ? s.room : profile->nodes_used) + 1,
			    sizeof(*sums->rows));
	if (rows && sums->rows) {
		make_rows(&s, rows, sums);
		for (uint32_t kind = 0; kind < profile->kinds; kind++)
			sum_kind(&s, kind, rows, sums->rows);
	} else {
		free(sums->rows);
		*sums = (struct incstack__profile_sums){0};
		error = INCSTACK_ENOMEM;
	}
	free(rows);
	summing_end(&s);
	return error;
}
