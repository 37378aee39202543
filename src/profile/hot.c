/* SPDX-License-Identifier: MIT
 *
 * Hot-method counters: one counter per method, always sorted (Whaley 2000, 6.5).
 */
#include <stdlib.h>

#include <incstack/pcct.h>

#include "ranking.h"
#include "table.h"

struct incstack_hot {
	struct incstack__table table;
	struct incstack__ranking ranking;
	uint64_t *method; /* by number */
	uint64_t total, lost;
};

int incstack_hot_create(uint32_t methods, struct incstack_hot **hot)
{
	struct incstack_hot *made;
	int error;

	if (!methods || methods >= INCSTACK__NONE || !hot)
		return INCSTACK_EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return INCSTACK_ENOMEM;
	error = incstack__table_init_for(&made->table, methods);
	if (!error)
		error = incstack__ranking_init(&made->ranking, methods);
	made->method = malloc(methods * sizeof(*made->method));
	if (error || !made->method) {
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
	free(hot->method);
	free(hot);
}

static uint32_t counter_of(struct incstack_hot *hot, uint64_t method)
{
	uint32_t hash = incstack__hash_pair(method, 0), number;
	size_t cursor = hash;

	while ((number = incstack__table_probe(&hot->table, hash, &cursor)) != INCSTACK__NONE)
		if (hot->method[number] == method)
			return number;
	if (hot->ranking.count == hot->ranking.room)
		return INCSTACK__NONE;
	number = incstack__ranking_push(&hot->ranking);
	hot->method[number] = method;
	(void)incstack__table_insert(&hot->table, hash,
				     number); /* cannot fail: the table was made large enough */
	return number;
}

int incstack_hot_add(struct incstack_hot *hot, uint64_t method, uint64_t weight)
{
	uint32_t number;

	if (!hot)
		return INCSTACK_EINVAL;
	if (weight > UINT64_MAX - hot->total)
		return INCSTACK_ERANGE;
	hot->total += weight;
	number = counter_of(hot, method);
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
		int error =
			t->top ? incstack_hot_add(hot, t->top->method, t->weight) : INCSTACK_EINVAL;

		first = first ? first : error;
	}
	return first;
}

int incstack_hot_hottest(const struct incstack_hot *hot, struct incstack_hot_method *methods,
			 int max)
{
	int count = 0;

	if (!hot || !methods || max < 0)
		return INCSTACK_EINVAL;
	for (; count < max && (uint32_t)count < hot->ranking.count; count++) {
		uint32_t number = hot->ranking.order[count];

		methods[count] = (struct incstack_hot_method){
			.method = hot->method[number], .weight = hot->ranking.weight[number]};
	}
	return count;
}

uint64_t incstack_hot_lost(const struct incstack_hot *hot)
{
	return hot ? hot->lost : 0;
}
