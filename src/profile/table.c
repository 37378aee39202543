/* SPDX-License-Identifier: MIT
 *
 * The hash table of indices: creation and growth.
 */
#include "table.h"

#include <stdlib.h>

#include <incstack/incstack.h>

enum { FIRST_SLOTS = 64 };

int incstack__table_init(struct incstack__table *table)
{
	table->slots = calloc(FIRST_SLOTS, sizeof(*table->slots));
	table->mask = FIRST_SLOTS - 1;
	table->used = 0;
	return table->slots ? 0 : INCSTACK_ENOMEM;
}

static void place(struct incstack__table *table, struct incstack__slot slot)
{
	size_t at = slot.hash & table->mask;

	while (table->slots[at].index_plus_one)
		at = (at + 1) & table->mask;
	table->slots[at] = slot;
}

static int grow(struct incstack__table *table)
{
	struct incstack__table old = *table;

	table->slots = calloc((old.mask + 1) * 2, sizeof(*table->slots));
	if (!table->slots) {
		*table = old;
		return INCSTACK_ENOMEM;
	}
	table->mask = old.mask * 2 + 1;
	for (size_t i = 0; i <= old.mask; i++)
		if (old.slots[i].index_plus_one)
			place(table, old.slots[i]);
	free(old.slots);
	return 0;
}

int incstack__table_insert(struct incstack__table *table, uint32_t hash, uint32_t index)
{
	if (table->used >= (table->mask + 1) / 8 * 5) {
		int error = grow(table);

		if (error)
			return error;
	}
	place(table, (struct incstack__slot){.hash = hash, .index_plus_one = index + 1});
	table->used++;
	return 0;
}
