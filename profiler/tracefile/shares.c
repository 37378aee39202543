/* SPDX-License-Identifier: MIT
 *
 * Sums by thread and by size; see shares.h. A file may name more threads than it says anything about.
 */
#include "shares.h"

int incstack__shares_init(struct incstack__shares *shares)
{
	*shares = (struct incstack__shares){0};
	return incstack__table_init(&shares->table);
}

void incstack__shares_free(struct incstack__shares *shares)
{
	free(shares->threads);
	free(shares->table.slots);
	*shares = (struct incstack__shares){0};
}

static uint32_t add(struct incstack__shares *shares, uint32_t number, uint32_t hash)
{
	const size_t count = shares->thread_count;

	if (count == shares->thread_room) {
		const size_t room = count == 0 ? 16 : 2 * count;
		struct incstack__share_of_thread *grown =
			realloc(shares->threads, room * sizeof(*grown));

		if (!grown)
			return INCSTACK__NONE;
		shares->threads = grown;
		shares->thread_room = room;
	}
	if (incstack__table_insert(&shares->table, hash, (uint32_t)count) != 0)
		return INCSTACK__NONE;
	shares->threads[count] = (struct incstack__share_of_thread){.number = number};
	shares->thread_count++;
	return (uint32_t)count;
}

uint32_t incstack__shares_thread(struct incstack__shares *shares, uint32_t number)
{
	const uint32_t hash = incstack__hash_pair(number, 0);
	size_t cursor = hash;
	uint32_t at = shares->latest;

	if (at < shares->thread_count && shares->threads[at].number == number)
		return at;
	do
		at = incstack__table_probe(&shares->table, hash, &cursor);
	while (at != INCSTACK__NONE && shares->threads[at].number != number);
	if (at == INCSTACK__NONE)
		at = add(shares, number, hash);
	if (at != INCSTACK__NONE)
		shares->latest = at;
	return at;
}

void incstack__shares_size(struct incstack__shares *shares, uint64_t size, uint64_t calls,
			   uint64_t bytes)
{
	const unsigned class = size == 0 ? 0 : 64u - (unsigned)__builtin_clzll(size);
	const unsigned last = INCSTACK__SHARES_SIZES - 1;
	struct incstack__share_of_size *of = &shares->sizes[class < last ? class : last];

	of->calls += calls;
	of->bytes += bytes;
}
