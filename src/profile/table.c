/* SPDX-License-Identifier: MIT
 *
 * The hash table of indices: creation and growth.
 */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include <incstack/incstack.h>

enum { FIRST_SLOTS = 64 };

/* Returns how many slots may be used before the table grows. */
static size_t capacity(size_t slots)
{
	return slots / 8 * 5;
}

int incstack__table_init_for(struct incstack__table *table, size_t count)
{
	size_t slots = FIRST_SLOTS;

	while (capacity(slots) < count)
		slots *= 2;
	table->slots = calloc(slots, sizeof(*table->slots));
	table->mask = slots - 1;
	table->used = 0;
	return table->slots ? 0 : INCSTACK_ENOMEM;
}

int incstack__table_init(struct incstack__table *table)
{
	return incstack__table_init_for(table, FIRST_SLOTS / 2);
}

void incstack__table_clear(struct incstack__table *table)
{
	memset(table->slots, 0, (table->mask + 1) * sizeof(*table->slots));
	table->used = 0;
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
	if (table->used >= capacity(table->mask + 1)) {
		int error = grow(table);

		if (error)
			return error;
	}
	place(table, (struct incstack__slot){.hash = hash, .index_plus_one = index + 1});
	table->used++;
	return 0;
}
