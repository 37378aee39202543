/* SPDX-License-Identifier: MIT
 *
 * Tickets of open requests. One word of a place holds the tickets that are left and the samples
 * in progress, so that a thread draws and announces its sample at once.
 */
#include <stdbool.h>

#include "tickets.h"

#define PROGRESS (UINT64_C(1) << 32)

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* A free place without samples in progress, or -1. */
static int find_free(const struct incstack__tickets *t)
{
	for (uint32_t n = 0; n < INCSTACK__REQUESTS; n++) {
		uint32_t i = (t->next + n) % INCSTACK__REQUESTS;
		if (!(t->open >> i & 1) && load(&t->places[i].word) == 0)
			return (int)i;
	}
	return -1;
}

int incstack__tickets_find(struct incstack__tickets *tickets, uint64_t *left)
{
	int i = find_free(tickets);
	*left = 0;
	if (i < 0)
		return i;
	if (tickets->asked >> i & 1) {
		*left = tickets->asked & ~tickets->open;
		tickets->asked = tickets->open;
	}
	tickets->next = (uint32_t)i + 1;
	return i;
}

void incstack__tickets_open(struct incstack__tickets *tickets, uint32_t place,
			    const struct incstack__request *request, uint32_t n)
{
	struct incstack__place *p = &tickets->places[place];
	p->request = *request;
	p->taken = 0;
	tickets->open |= UINT64_C(1) << place;
	tickets->asked |= UINT64_C(1) << place;
	__atomic_store_n(&p->word, n, __ATOMIC_RELEASE);
}

const struct incstack__request *incstack__tickets_draw(struct incstack__tickets *tickets,
						       uint32_t place)
{
	struct incstack__place *p = &tickets->places[place];
	uint64_t word = load(&p->word);
	do {
		if (!(uint32_t)word)
			return NULL;
	} while (!__atomic_compare_exchange_n(&p->word, &word, word - 1 + PROGRESS, true,
					      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	return &p->request;
}

void incstack__tickets_taken(struct incstack__tickets *tickets, uint32_t place)
{
	__atomic_fetch_add(&tickets->places[place].taken, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&tickets->places[place].word, PROGRESS, __ATOMIC_RELEASE);
}

uint32_t incstack__tickets_left(const struct incstack__tickets *tickets, uint32_t place)
{
	uint64_t word = load(&tickets->places[place].word);
	return (uint32_t)word + (uint32_t)(word >> 32);
}

void incstack__tickets_close(struct incstack__tickets *tickets, uint32_t place)
{
	struct incstack__place *p = &tickets->places[place];
	uint64_t word = __atomic_fetch_and(&p->word, ~(PROGRESS - 1), __ATOMIC_ACQ_REL);
	__atomic_fetch_add(&tickets->lost_closed, (uint32_t)word, __ATOMIC_RELAXED);
	tickets->open &= ~(UINT64_C(1) << place);
}

void incstack__tickets_close_due(struct incstack__tickets *tickets, uint64_t now)
{
	for (uint32_t i = 0; i < INCSTACK__REQUESTS; i++) {
		uint64_t deadline = tickets->places[i].request.deadline;
		if (tickets->open >> i & 1 && (!deadline || deadline <= now))
			incstack__tickets_close(tickets, i);
	}
}
