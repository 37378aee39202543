/* SPDX-License-Identifier: MIT
 *
 * Chooses the barrier distance of a stack from what it observes. A barrier that is too close to
 * the top fires often; one that is too far makes every sample walk more. Over a window of
 * samples, the file counts how many frames were popped between two samples, and computes from
 * the counts what each distance would have cost. A sample from further up than the distance may
 * walk on to an older barrier for a while, at a price (distance_pay).
 */
#include <string.h>

#include "distance.h"

enum {
	FRAME_COST = 1,  /* to capture a frame */
	RETURN_COST = 8, /* to intercept a return and to plant the next barrier */
	WINDOW = 128,    /* samples in a window */
	IDLE_MIN = 896,  /* samples between two windows after a change; doubled, */
	IDLE_MAX = 7168, /* up to this, after each window that changed nothing */
};

#ifdef INCSTACK_HOSTILE
enum { RENT = 0 }; /* a barrier is planted wherever that is possible */
#else
enum { RENT = RETURN_COST };
#endif

/* How many barriers a pop of that many frames hits if they are `distance` frames apart. */
static uint32_t passed(uint32_t popped, uint32_t distance)
{
	return popped / (distance + 1);
}

static uint32_t cost_of(const struct distance *d, uint32_t distance)
{
	uint32_t cost = d->samples * distance * FRAME_COST;
	for (uint32_t i = distance + 1; i <= MOST_BETWEEN; i++)
		if (d->popped[i])
			cost += d->popped[i] * passed(i, distance) *
				(RETURN_COST + distance * FRAME_COST);
	return cost;
}

/* Ends a window: changes to the distance at which its samples would have been clearly cheaper.
 * The best distance is 0 or a number of frames that some sample popped. */
static void adapt(struct distance *d)
{
	uint32_t best = d->value, best_cost = cost_of(d, best);
	best_cost -= best_cost / 16;
	for (uint32_t i = 0; i <= MOST_BETWEEN; i++) {
		uint32_t cost = i == 0 || d->popped[i] ? cost_of(d, i) : UINT32_MAX;
		if (cost < best_cost) {
			best = i;
			best_cost = cost;
		}
	}
	d->pause = best != d->value ? IDLE_MIN : d->pause < IDLE_MAX ? d->pause * 2 : IDLE_MAX;
	d->value = best;
	d->samples = 0;
	memset(d->popped, 0, sizeof(d->popped));
}

void incstack__distance_open(stack *s)
{
	uint32_t chosen = s->runtime->options.distance;
	s->distance = (struct distance){
		.value = chosen ? chosen - 1 : 2, .pause = IDLE_MIN, .fixed = chosen != 0};
}

/* Resets how far a sample may walk, after a barrier was planted or the distance changed. */
void incstack__distance_renew(stack *s)
{
	bool rents = s->mode == INCSTACK_MODE_PATCH && !s->distance.fixed;
	s->walk_limit = has_barriers(s) ? s->distance.value + rents * RENT : UINT32_MAX;
	s->walk_target = rents ? s->distance.value + 1 : UINT32_MAX;
}

/* Charges a sample that walked over so many frames and planted no barrier. This is ski rental:
 * each frame beyond the distance is rent, and a barrier is bought, that is planted, once the
 * rent paid equals its cost. Rent and price together are then at most twice the optimum
 * (Karlin et al. 1988, "Competitive snoopy caching"). */
void incstack__distance_pay(stack *s, uint32_t frames)
{
	uint32_t left = s->walk_limit - s->distance.value, rent = frames - s->walk_target;
	s->walk_limit -= left < rent ? left : rent;
}

/* How many frames of the last sample are not in this sample. Both lists begin with the youngest
 * frame; they are compared from the base. */
static uint32_t left_frames(const struct distance *d, const object *first, const object *end)
{
	const object *a = d->last_end, *b = end;
	while (a > d->last_first && b > first) {
		if (a[-1].address == b[-1].address) {
			if (a[-1].function != b[-1].function)
				break;
			b--;
		} else if (a[-1].address < b[-1].address) {
			break;
		}
		a--;
	}
	return (uint32_t)(a - d->last_first);
}

/* Records the frames of a sample in the window. */
void incstack__distance_note(stack *s, const trace *t)
{
	const object *first = (const object *)t->top + 1, *end = s->arena.object;
	struct distance *d = &s->distance;
	if (d->fixed) {
		s->observe_at = UINT64_MAX;
		return;
	}
	if (!has_barriers(s)) {
		s->observe_at = s->samples + IDLE_MIN;
		d->last_first = NULL;
		return;
	}
	s->observe_at = s->samples + 1;
	/* The objects of a sample that continued in another chunk are not one list. */
	if (first < s->arena.current->objects || first > end) {
		d->last_first = NULL;
		return;
	}
	if (d->last_first) {
		uint32_t popped = d->returns ? d->last_count + d->returns * (d->value + 1)
					     : left_frames(d, first, end);
		d->popped[popped < MOST_BETWEEN ? popped : MOST_BETWEEN]++;
		d->samples++;
	}
	d->returns = 0;
	d->last_first = first;
	d->last_end = end;
	d->last_count = (uint32_t)(end - first);
	if (d->samples >= WINDOW) {
		adapt(d);
		incstack__distance_renew(s);
		s->observe_at = s->samples + d->pause;
		d->last_first = NULL;
	}
}

/* The objects of the last sample no longer exist. */
void incstack__distance_clear_last(stack *s)
{
	s->distance.last_first = NULL;
}
