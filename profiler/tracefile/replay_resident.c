/* SPDX-License-Identifier: MIT
 *
 * Gives the live blocks of a replay to resident.c, if the trace has a moment. A sampled block stands for more than itself.
 */
#include <math.h>
#include <stdlib.h>

#include <incstack/incstack.h>

#include "replay.h"

/* Returns how many bytes an allocation stands for. An allocation of s bytes is sampled with the
 * probability 1 - exp(-s / interval). Each sample counts as s divided by this probability, so that
 * sums are right on average. */
double incstack__replay_weight(const struct incstack__replay *replay, uint64_t bytes)
{
	const double size = bytes > 0 ? (double)bytes : 1.0;

	if (replay->interval <= 1)
		return (double)bytes;
	return size / -expm1(-size / (double)replay->interval);
}

/* Returns the size of a block. If all allocations are recorded, a block stands for itself; else the
 * smallest size with this weight is searched for, because the table keeps weights only. */
static uint64_t size_of(const struct incstack__replay *replay, uint64_t weight)
{
	uint64_t low = 0;
	uint64_t high = weight;

	if (replay->interval <= 1)
		return weight;
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;

		if ((uint64_t)(incstack__replay_weight(replay, middle) + 0.5) < weight)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int incstack__replay_resident(struct incstack__replay *replay)
{
	const struct incstack__moment *moment = incstack__tracefile_reader_moment(replay->reader);
	struct incstack__resident_block *blocks;
	size_t count = 0;
	int error;

	if (!moment || replay->kind == INCSTACK__TRACEFILE_OF_CPU)
		return 0;
	blocks = calloc(replay->table_used + 1, sizeof(*blocks));
	if (!blocks)
		return INCSTACK_ENOMEM;
	for (uint64_t i = 0; i < replay->table_size; i++) {
		const struct incstack__replay_live *live = &replay->table[i];

		if (live->pointer != 0)
			blocks[count++] = (struct incstack__resident_block){
				live->pointer, size_of(replay, live->bytes), live->bytes,
				live->node};
	}
	error = incstack__resident_find(&replay->resident, moment, blocks, count,
					replay->cct.count);
	free(blocks);
	return error;
}
