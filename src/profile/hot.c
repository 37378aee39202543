/* SPDX-License-Identifier: MIT
 *
 * Hot-function counters: one counter per function, always sorted (Whaley 2000, 6.5).
 */
#include <stdlib.h>

#include <incstack/pcct.h>

#include "ranking.h"
#include "table.h"

struct incstack_hot {
	struct incstack__table table;
	struct incstack__ranking ranking;
	uint64_t *function; /* by number */
	uint64_t total, lost;
};

int incstack_hot_create(uint32_t functions, struct incstack_hot **hot)
{
	struct incstack_hot *made;
	int error;

	if (!functions || functions >= INCSTACK__NONE || !hot)
		return INCSTACK_EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return INCSTACK_ENOMEM;
	error = incstack__table_init_for(&made->table, functions);
	if (!error)
		error = incstack__ranking_init(&made->ranking, functions);
	made->function = malloc(functions * sizeof(*made->function));
	if (error || !made->function) {
		incstack_hot_destroy(made);
		return INCSTACK_ENOMEM;
	}
	*hot = made;
	return 0;
}

void incstack_hot_destroy(struct incstack_hot *hot)
{
	if (!hot)
		return;
	free(hot->table.slots);
	incstack__ranking_free(&hot->ranking);
	free(hot->function);
	free(hot);
}

static uint32_t counter_of(struct incstack_hot *hot, uint64_t function)
{
	uint32_t hash = incstack__hash_pair(function, 0), number;
	size_t cursor = hash;

	while ((number = incstack__table_probe(&hot->table, hash, &cursor)) != INCSTACK__NONE)
		if (hot->function[number] == function)
			return number;
	if (hot->ranking.count == hot->ranking.room)
		return INCSTACK__NONE;
	number = incstack__ranking_push(&hot->ranking);
	hot->function[number] = function;
	(void)incstack__table_insert(&hot->table, hash,
				     number); /* cannot fail: the table was made large enough */
	return number;
}

int incstack_hot_add(struct incstack_hot *hot, uint64_t function, uint64_t weight)
{
	uint32_t number;

	if (!hot)
		return INCSTACK_EINVAL;
	if (weight > UINT64_MAX - hot->total)
		return INCSTACK_ERANGE;
	hot->total += weight;
	number = counter_of(hot, function);
	if (number == INCSTACK__NONE) {
		hot->lost += weight;
		return INCSTACK_ELIMIT;
	}
	incstack__ranking_add(&hot->ranking, number, weight);
	return 0;
}

int incstack_hot_add_tree(struct incstack_hot *hot, const struct incstack_tree *tree)
{
	int first = 0;

	if (!hot || !tree)
		return INCSTACK_EINVAL;
	for (const struct incstack_trace *t = tree->traces; t; t = t->next) {
		int error = t->top ? incstack_hot_add(hot, t->top->function, t->weight)
				   : INCSTACK_EINVAL;

		first = first ? first : error;
	}
	return first;
}

int incstack_hot_hottest(const struct incstack_hot *hot, struct incstack_hot_function *functions,
			 int max)
{
	int count = 0;

	if (!hot || !functions || max < 0)
		return INCSTACK_EINVAL;
	for (; count < max && (uint32_t)count < hot->ranking.count; count++) {
		uint32_t number = hot->ranking.order[count];

		functions[count] = (struct incstack_hot_function){
			.function = hot->function[number], .weight = hot->ranking.weight[number]};
	}
	return count;
}

uint64_t incstack_hot_lost(const struct incstack_hot *hot)
{
	return hot ? hot->lost : 0;
}
