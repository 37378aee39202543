/* SPDX-License-Identifier: MIT
 *
 * Mode VALIDATE: compares a whole walk with the one before. The frames of both are counted, so frames at
 * the same distance from the base are compared. The oldest ones that are all equal share objects.
 */
#include "heap_compare.h"

static bool are_equal(const frame *a, const frame *b)
{
	return a->name == b->name && a->function == b->function && a->position == b->position &&
	       a->flags == b->flags && a->kind == b->kind;
}

static const object *skip(const object *o, uint32_t frames)
{
	for (; frames; frames--)
		o = o->parent;
	return o;
}

/* Frees the objects behind o, which were made last. */
static void drop_behind(stack *s, const object *o)
{
	struct chunk *c = s->arena.newest;
	while ((uintptr_t)o - (uintptr_t)c >= c->bytes)
		c = c->older;
	incstack__heap_go_back(s, (struct place){(object *)(uintptr_t)o + 1, c});
}

/* `top` and its callers, so many and down to the base, were just captured. The oldest of them that are
 * equal to remembered ones are replaced by these. Returns the youngest object that was kept, or null.
 * The top itself is always a new object. */
const object *incstack__heap_compare(stack *s, const object *top, uint32_t depth)
{
	const object *now = top, *then = s->remembered, *kept = NULL;
	const uint32_t both = depth < s->depth ? depth : s->depth;
	object *differs = NULL; /* the last one, or the one before those that are compared */
	if (then) {
		if (depth > both) {
			now = skip(top, depth - both - 1);
			differs = (object *)(uintptr_t)now;
			kept = then = skip(then, s->depth - both);
			now = now->parent;
		} else {
			then = skip(then, s->depth - both + 1);
			differs = (object *)(uintptr_t)now;
			kept = then;
			now = now->parent;
		}
	}
	for (; then && now; now = now->parent, then = then->parent)
		if (!are_equal(&now->frame, &then->frame)) {
			differs = (object *)(uintptr_t)now;
			kept = then->parent;
		}
	s->remembered = top;
	s->depth = depth;
	if (!kept)
		return NULL;
	differs->parent = kept;
	drop_behind(s, differs);
	return kept;
}
