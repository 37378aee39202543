/* SPDX-License-Identifier: MIT
 *
 * Chooses the barrier distance of a stack from what it observes. A barrier that
 * is too near fires often, one that is too far makes every sample walk more. How
 * many frames were left between two samples is counted over a window, and what
 * each distance would have cost follows from the counts. A sample that comes from
 * further up may go on to an older barrier for a while, and pays (distance_pay).
 */
#include <string.h>

#include "internal.h"

enum {
	FRAME_COST = 1,  /* to capture a frame */
	RETURN_COST = 8, /* to intercept a return and to plant the next barrier */
	WINDOW = 128,    /* samples that are looked at, */
	IDLE_MIN = 896,  /* and then so many that are not: more after each window that */
	IDLE_MAX = 7168, /* changed nothing */
};

#ifdef INCSTACK_HOSTILE
enum { RENT = 0 }; /* barriers wherever they may be */
#else
enum { RENT = RETURN_COST };
#endif

/* How many barriers, each that far below the last, a pop of so many frames passes. */
static uint32_t passed(uint32_t popped, uint32_t distance)
{
	return popped / (distance + 1);
}

static uint32_t cost_of(const struct distance *d, uint32_t distance)
{
	uint32_t cost = d->samples * distance * FRAME_COST;
	for (uint32_t i = distance + 1; i <= INCSTACK_DISTANCE_MAX; i++)
		if (d->popped[i])
			cost += d->popped[i] * passed(i, distance) *
				(RETURN_COST + distance * FRAME_COST);
	return cost;
}

/* Ends a window: goes where its samples would have been clearly cheaper. Only
 * what some sample popped can be best, or 0. */
static void adapt(struct distance *d)
{
	uint32_t best = d->value, best_cost = cost_of(d, best);
	best_cost -= best_cost / 16;
	for (uint32_t i = 0; i <= INCSTACK_DISTANCE_MAX; i++) {
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
	int32_t fixed = s->runtime->options.distance;
	s->distance = (struct distance){
		.value = fixed < 0 ? 2 : (uint32_t)fixed, .pause = IDLE_MIN, .fixed = fixed >= 0};
}

/* How far a sample may walk from now on: a barrier was planted, or is wanted elsewhere. */
void incstack__distance_renew(stack *s)
{
	bool rents = s->mode == INCSTACK_MODE_PATCH && !s->distance.fixed;
	s->reach = has_barriers(s) ? s->distance.value + rents * RENT : UINT32_MAX;
	s->near = rents ? s->distance.value + 1 : UINT32_MAX;
}

/* A sample walked over so many frames and planted nothing. What it walked too far is rent;
 * a barrier is bought when as much was paid as it costs, so that both together are at most
 * twice what was best (Karlin et al. 1988, "Competitive snoopy caching"). */
void incstack__distance_pay(stack *s, uint32_t frames)
{
	uint32_t left = s->reach - s->distance.value, rent = frames - s->near;
	s->reach -= left < rent ? left : rent;
}

/* How many of the frames of the last sample are not among those of this one. Both
 * are listed youngest first; compared from the base. */
static uint32_t left_frames(const struct distance *d, const object *first, const object *end)
{
	const object *a = d->last_end, *b = end;
	while (a > d->last_first && b > first) {
		if (a[-1].address == b[-1].address) {
			if (a[-1].method != b[-1].method)
				break;
			b--;
		} else if (a[-1].address < b[-1].address) {
			break;
		}
		a--;
	}
	return (uint32_t)(a - d->last_first);
}

/* Takes note of the frames of a sample. */
void incstack__distance_note(stack *s, const trace *t)
{
	const object *first = (const object *)t->top + 1, *end = s->arena.object;
	struct distance *d = &s->distance;
	if (d->fixed) {
		s->look_at = UINT64_MAX;
		return;
	}
	if (!has_barriers(s)) {
		s->look_at = s->samples + IDLE_MIN;
		d->last_first = NULL;
		return;
	}
	s->look_at = s->samples + 1;
	/* A sample that went on to another chunk is not one list. */
	if (first < s->arena.current->objects || first > end) {
		d->last_first = NULL;
		return;
	}
	if (d->last_first) {
		uint32_t popped = d->returns ? d->last_count + d->returns * (d->value + 1)
					     : left_frames(d, first, end);
		d->popped[popped < INCSTACK_DISTANCE_MAX ? popped : INCSTACK_DISTANCE_MAX]++;
		d->samples++;
	}
	d->returns = 0;
	d->last_first = first;
	d->last_end = end;
	d->last_count = (uint32_t)(end - first);
	if (d->samples >= WINDOW) {
		adapt(d);
		incstack__distance_renew(s);
		s->look_at = s->samples + d->pause;
		d->last_first = NULL;
	}
}

/* The objects of the last sample are not there any more. */
void incstack__distance_forget(stack *s)
{
	s->distance.last_first = NULL;
}
