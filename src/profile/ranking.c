/* SPDX-License-Identifier: MIT
 *
 * A sorted array that is repaired after each change. An entry that grew changes places with the
 * first of each run of equal entries that it overtakes. So the cost depends on the number of
 * distinct weights in between, not on the number of entries.
 */
#include "ranking.h"

#include <stdlib.h>

#include <incstack/incstack.h>

int incstack__ranking_init(struct incstack__ranking *ranking, uint32_t room)
{
	ranking->weight = malloc(room * sizeof(*ranking->weight));
	ranking->order = malloc(room * sizeof(*ranking->order));
	ranking->place = malloc(room * sizeof(*ranking->place));
	ranking->count = 0;
	ranking->room = room;
	return ranking->weight && ranking->order && ranking->place ? 0 : INCSTACK_ENOMEM;
}

void incstack__ranking_free(struct incstack__ranking *ranking)
{
	free(ranking->weight);
	free(ranking->order);
	free(ranking->place);
}

void incstack__ranking_clear(struct incstack__ranking *ranking)
{
	ranking->count = 0;
}

uint32_t incstack__ranking_push(struct incstack__ranking *ranking)
{
	uint32_t number = ranking->count++;

	ranking->weight[number] = 0;
	ranking->order[number] = number;
	ranking->place[number] = number;
	return number;
}

/* Returns the first place in [0, end) whose weight is not above the given one. */
static uint32_t first_not_above(const struct incstack__ranking *ranking, uint32_t end,
				uint64_t weight)
{
	uint32_t low = 0;

	while (low < end) {
		uint32_t middle = low + (end - low) / 2;

		if (ranking->weight[ranking->order[middle]] > weight)
			low = middle + 1;
		else
			end = middle;
	}
	return low;
}

static void put(struct incstack__ranking *ranking, uint32_t number, uint32_t place)
{
	ranking->order[place] = number;
	ranking->place[number] = place;
}

void incstack__ranking_add(struct incstack__ranking *ranking, uint32_t number, uint64_t weight)
{
	uint64_t grown = ranking->weight[number] + weight;
	uint32_t place = ranking->place[number];

	ranking->weight[number] = grown;
	while (place && ranking->weight[ranking->order[place - 1]] < grown) {
		uint32_t ahead = ranking->order[place - 1];
		uint32_t first = first_not_above(ranking, place, ranking->weight[ahead]);

		put(ranking, ranking->order[first], place);
		place = first;
	}
	put(ranking, number, place);
}
