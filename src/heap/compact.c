/* SPDX-License-Identifier: MIT
 *
 * Gives back the memory of objects that are not known any more: copies those that are to a new
 * space, and leaves the old one to the trees that were retrieved from it.
 */
#include "compact.h"

enum { ROOM_MIN = 64, PATIENCE = 256 };

static size_t segment_length(const object *from, const object *end)
{
	size_t n = 0;
	for (; from && from != end; from = from->parent)
		n++;
	return n;
}

/* The object at which the segment of a barrier ends: that of the next older barrier. */
static const object *older(const stack *s, uint32_t i)
{
	return i ? s->barriers[i - 1].at : NULL;
}

static size_t count_known(const stack *s)
{
	size_t n = segment_length(s->remembered, NULL);
	for (uint32_t i = s->count; i; i--)
		n += segment_length(s->barriers[i - 1].at, older(s, i - 1));
	return n;
}

/* Copies a segment behind what is there. Returns the copy of its first object. *link gets the pointer to
 * it, and then is where the pointer to the next segment goes; null after the last one. */
static const object *copy(stack *s, const object *from, const object *end, const object ***link)
{
	object *to = s->arena.next, *first = to;
	if (*link)
		**link = first;
	for (; from && from != end; from = from->parent, to++) {
		*to = *from;
		to->parent = to + 1;
	}
	to[-1].parent = NULL;
	*link = from ? &to[-1].parent : NULL;
	s->arena.next = to;
	return first;
}

static void copy_known(stack *s)
{
	const object **link = NULL;
	if (s->remembered)
		s->remembered = copy(s, s->remembered, NULL, &link);
	link = NULL;
	for (uint32_t i = s->count; i; i--)
		s->barriers[i - 1].at = copy(s, s->barriers[i - 1].at, older(s, i - 1), &link);
}

void incstack__heap_compact(stack *s)
{
	const size_t known = count_known(s), walk = s->walk;
	const size_t free_room = known < 2 * walk ? 2 * walk : known;
	s->copy_at = 2 * known + 2 * walk + PATIENCE;
	s->walk = 0;
	if (used(&s->arena) < s->copy_at)
		return;
	s->stats.copies++;
	if (!known) {
		incstack__heap_use_again(s);
		return;
	}
	struct arena left = s->arena;
	if (incstack__heap_space_open(s->heap, &s->arena, known + free_room + ROOM_MIN)) {
		s->copy_at = 2 * used(&s->arena); /* there is no memory now: try again later */
		return;
	}
	copy_known(s);
	incstack__heap_space_leave(&left);
	s->scratch_end = NULL;
}
