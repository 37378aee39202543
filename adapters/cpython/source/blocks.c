/* SPDX-License-Identifier: MIT
 *
 * The blocks of memory that are live. An entry has 16 bytes, so a cache line holds four: the address
 * without its four lowest bits, which are 0, has 44 bits, the size 52, and the context 32.
 */
#include "blocks.h"

#include <stdlib.h>

struct entry {
	uint64_t address_size; /* the address, and the high bits of the size; 0: free */
	uint64_t size_context; /* the low bits of the size, and the context */
};

enum { HIGH_BITS = 20 };

static struct entry *entries;
static size_t count, used;

static uint64_t address_of(const struct entry *e)
{
	return e->address_size >> HIGH_BITS;
}

/* Neighbours in memory are neighbours here, in groups of 16: most blocks are made and freed near the last one. */
static size_t home(uint64_t address)
{
	const uint64_t group = (address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
	return (size_t)(group << 4 | (address & 15)) & (count - 1);
}

static struct entry *find(uint64_t address)
{
	size_t i = home(address);
	while (entries[i].address_size && address_of(&entries[i]) != address)
		i = (i + 1) & (count - 1);
	return &entries[i];
}

static bool grow(void)
{
	struct entry *old = entries;
	const size_t before = count;
	struct entry *more = calloc(before ? 2 * before : 1 << 16, sizeof(*more));
	if (!more)
		return false;
	entries = more;
	count = before ? 2 * before : 1 << 16;
	for (size_t i = 0; i < before; i++)
		if (old[i].address_size)
			*find(address_of(&old[i])) = old[i];
	free(old);
	return true;
}

static struct block block_of(const struct entry *e)
{
	return (struct block){(size_t)((e->address_size & 0xfffff) << 32 | e->size_context >> 32),
			      (uint32_t)e->size_context};
}

/* Remembers a block, and replaces that which is there already: *was gets it. */
enum blocks_added blocks_add(uintptr_t address, struct block block, struct block *was)
{
	if (address & 15 || address >> 48 || (2 * used >= count && !grow()))
		return BLOCKS_REFUSED;
	struct entry *e = find(address >> 4);
	const bool is_new = !e->address_size;
	used += is_new;
	if (!is_new)
		*was = block_of(e);
	e->address_size = (uint64_t)(address >> 4) << HIGH_BITS | (block.size >> 32 & 0xfffff);
	e->size_context = (uint64_t)(uint32_t)block.size << 32 | block.context;
	return is_new ? BLOCKS_NEW : BLOCKS_REPLACED;
}

/* Returns false if there is no such block. */
bool blocks_remove(uintptr_t address, struct block *block)
{
	struct entry *e = entries ? find(address >> 4) : NULL;
	if (!e || !e->address_size || address & 15)
		return false;
	*block = block_of(e);
	const size_t mask = count - 1;
	size_t i = (size_t)(e - entries);
	for (size_t j = (i + 1) & mask; entries[j].address_size; j = (j + 1) & mask)
		if (((j - home(address_of(&entries[j]))) & mask) >= ((j - i) & mask)) {
			entries[i] = entries[j];
			i = j;
		}
	entries[i].address_size = 0;
	used--;
	return true;
}

void blocks_free(void)
{
	free(entries);
	entries = NULL;
	count = used = 0;
}
