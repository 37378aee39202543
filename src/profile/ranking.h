/* SPDX-License-Identifier: MIT
 *
 * Keeps the numbers 0..count-1 in descending order of their weights while these grow.
 */
#ifndef INCSTACK_PROFILE_RANKING_H
#define INCSTACK_PROFILE_RANKING_H

#include <stdint.h>

struct incstack__ranking {
	uint64_t *weight; /* by number */
	uint32_t *order;  /* numbers, heaviest first */
	uint32_t *place;  /* of each number in order */
	uint32_t count, room;
};

int incstack__ranking_init(struct incstack__ranking *ranking, uint32_t room);
void incstack__ranking_free(struct incstack__ranking *ranking);
void incstack__ranking_clear(struct incstack__ranking *ranking);
/* Adds the next number, with weight 0; there must be room. */
uint32_t incstack__ranking_push(struct incstack__ranking *ranking);
void incstack__ranking_add(struct incstack__ranking *ranking, uint32_t number, uint64_t weight);

#endif
