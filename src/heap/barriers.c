/* SPDX-License-Identifier: MIT
 *
 * The frames with a mark, and the objects that are known because of them.
 */
#include "barriers.h"

#include <string.h>

static bool grow(stack *s)
{
	void *memory;
	const uint32_t room = s->room * 2;
	if (room > UINT32_MAX / 2 / sizeof(struct barrier) ||
	    incstack__heap_allocate(s->heap, room * sizeof(struct barrier), &memory))
		return false;
	memcpy(memory, s->barriers, s->count * sizeof(struct barrier));
	if (s->barriers != s->few)
		incstack__heap_free(s->heap, s->barriers, s->room * sizeof(struct barrier));
	s->barriers = memory;
	s->room = room;
	return true;
}

/* Marks the frame of o. It is the youngest barrier then. `caller` is the name of its caller if this was
 * not captured, otherwise 0. Returns false if the frame cannot have a mark. */
bool incstack__heap_plant(stack *s, const object *o, uintptr_t caller)
{
	if ((s->count == s->room && !grow(s)) || set_mark(s, o->frame.name, 1) < 0) {
		s->stats.refused++;
		return false;
	}
	s->barriers[s->count++] = (struct barrier){o, caller};
	s->gaps += caller != 0;
	s->stats.planted++;
	return true;
}

/* The callers of o will never be known. */
void incstack__heap_cut(stack *s, const object *o)
{
	object *cut = writable(o);
	cut->parent = NULL;
	cut->frame.flags |= INCSTACK_HEAP_TRUNCATED;
	s->stats.truncated++;
}

/* Returns 1 + the index of the barrier, of the oldest `upto`, on the frame `name`; 0: none. */
uint32_t incstack__heap_find(const stack *s, uint32_t upto, uintptr_t name)
{
	while (upto && s->barriers[upto - 1].at->frame.name != name)
		upto--;
	return upto;
}

/* The frames of the barriers with the indices [from, to) were popped without a report. Returns
 * `from`, which is where the barrier with the index `to` is now. */
uint32_t incstack__heap_remove_stale(stack *s, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (s->barriers[i].caller) {
			s->gaps--;
			incstack__heap_cut(s, s->barriers[i].at);
		}
	s->stats.stale += to - from;
	if (from != to) /* it is rare */
		for (uint32_t i = to; i < s->count; i++)
			s->barriers[from + i - to] = s->barriers[i];
	s->count -= to - from;
	return from;
}

struct barrier incstack__heap_pop(stack *s)
{
	const struct barrier b = s->barriers[--s->count];
	s->gaps -= b.caller != 0;
	return b;
}

/* Puts a mark on the caller of o that the distance says, without a walk, because the callers of o are
 * known and cannot have changed. */
void incstack__heap_move_down(stack *s, const object *o)
{
	const object *stop = s->count ? s->barriers[s->count - 1].at : NULL;
	uint32_t n = s->distance;
	for (const object *p = o->parent; p && p != stop; p = p->parent) {
		if (n > 1)
			n--;
		else if (incstack__heap_plant(s, p, 0))
			return;
	}
}
