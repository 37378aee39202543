/* SPDX-License-Identifier: MIT
 *
 * A hash table from a hash to indices of an array of the caller. The keys are in that array. The
 * caller compares them, and growing does not read them.
 */
#ifndef INCSTACK_PROFILE_TABLE_H
#define INCSTACK_PROFILE_TABLE_H

#include <stddef.h>
#include <stdint.h>

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

int incstack__table_init(struct incstack__table *table);
/* Makes a table so large that `count` insertions cannot fail. */
int incstack__table_init_for(struct incstack__table *table, size_t count);
void incstack__table_clear(struct incstack__table *table);
int incstack__table_insert(struct incstack__table *table, uint32_t hash, uint32_t index);

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
