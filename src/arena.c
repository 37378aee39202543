/* SPDX-License-Identifier: MIT
 *
 * Memory for frame objects and traces: chunks that are taken from the embedder
 * outside samples and used up without a call. Objects fill a chunk from its
 * start, traces from its end.
 */
#include "internal.h"

static void use(struct arena *a, struct chunk *c)
{
	c->next = NULL;
	c->objects = (object *)(((uintptr_t)(c + 1) + 31) & ~(uintptr_t)31);
	if (a->current) {
		a->current->objects_end = a->object;
		a->current->next = c;
	} else {
		a->first = c;
	}
	a->current = c;
	a->object = c->objects;
	a->limit = (trace *)((char *)c + c->bytes);
}

/* Adds a spare chunk within the limit of the stack. */
int incstack__arena_grow(stack *s)
{
	runtime *rt = s->runtime;
	size_t bytes = rt->options.chunk_bytes;
	if (s->arena.bytes + bytes > rt->options.stack_bytes)
		return INCSTACK_ELIMIT;
	struct chunk *c = incstack__allocate(rt, bytes);
	if (!c)
		return INCSTACK_ENOMEM;
	c->bytes = bytes;
	c->runtime = rt;
	s->arena.bytes += bytes;
	if (!s->arena.current) {
		use(&s->arena, c);
		return 0;
	}
	c->next = s->arena.spare;
	s->arena.spare = c;
	return 0;
}

/* Goes on to a spare chunk; false if there is none. */
bool incstack__arena_next(stack *s)
{
	struct chunk *c = s->arena.spare;
	if (!c)
		return false;
	s->arena.spare = c->next;
	use(&s->arena, c);
	return true;
}

void incstack__arena_free(runtime *rt, struct chunk *chunk)
{
	while (chunk) {
		struct chunk *next = chunk->next;
		incstack__release(rt, chunk, chunk->bytes);
		chunk = next;
	}
}
