/* SPDX-License-Identifier: MIT
 *
 * A hash table from a hash to indices of an array of the caller. The keys are in that array. The
 * caller compares them, and growing does not read them. Nothing can be removed but all. It allocates with
 * calloc, so it is not for code that may run in a sample.
 *
 * A header, because profile/, tracefile/ and the tool are separate link targets.
 */
#ifndef INCSTACK__TABLE_H
#define INCSTACK__TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/error.h>

#define INCSTACK__NONE UINT32_MAX

struct incstack__slot {
	uint32_t hash;
	uint32_t index_plus_one; /* 0: free */
};

struct incstack__table {
	struct incstack__slot *slots;
	size_t mask;
	size_t used;
};

/* Returns how many of the slots may be used before the table grows. */
static inline size_t incstack__table_capacity(size_t slots)
{
	return slots / 8 * 5;
}

/* Makes a table so large that `count` insertions cannot fail. */
static inline int incstack__table_init_for(struct incstack__table *table, size_t count)
{
	enum { FIRST_SLOTS = 64 };
	size_t slots = FIRST_SLOTS;

	while (incstack__table_capacity(slots) < count)
		slots *= 2;
	table->slots = calloc(slots, sizeof(*table->slots));
	table->mask = slots - 1;
	table->used = 0;
	return table->slots ? 0 : INCSTACK_ENOMEM;
}

static inline int incstack__table_init(struct incstack__table *table)
{
	return incstack__table_init_for(table, 0);
}

static inline void incstack__table_clear(struct incstack__table *table)
{
	memset(table->slots, 0, (table->mask + 1) * sizeof(*table->slots));
	table->used = 0;
}

static inline void incstack__table_place(struct incstack__table *table, struct incstack__slot slot)
{
	size_t at = slot.hash & table->mask;

	while (table->slots[at].index_plus_one)
		at = (at + 1) & table->mask;
	table->slots[at] = slot;
}

static inline int incstack__table_grow(struct incstack__table *table)
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
			incstack__table_place(table, old.slots[i]);
	free(old.slots);
	return 0;
}

static inline int incstack__table_insert(struct incstack__table *table, uint32_t hash,
					 uint32_t index)
{
	if (table->used >= incstack__table_capacity(table->mask + 1)) {
		int error = incstack__table_grow(table);

		if (error)
			return error;
	}
	incstack__table_place(table,
			      (struct incstack__slot){.hash = hash, .index_plus_one = index + 1});
	table->used++;
	return 0;
}

/* Returns the next index with this hash, or NONE after the last. *cursor is the hash at first. */
static inline uint32_t incstack__table_probe(const struct incstack__table *table, uint32_t hash,
					     size_t *cursor)
{
	for (;;) {
		const struct incstack__slot *slot = &table->slots[(*cursor)++ & table->mask];

		if (!slot->index_plus_one)
			return INCSTACK__NONE;
		if (slot->hash == hash)
			return slot->index_plus_one - 1;
	}
}

/* Hashes two words: multiplies and folds, so that every bit of both reaches the low bits. */
static inline uint32_t incstack__hash_pair(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;

	h = (h ^ (h >> 32) ^ b) * 0x94d049bb133111ebu;
	h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9u;
	return (uint32_t)(h >> 32);
}

#endif
