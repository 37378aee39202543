/* SPDX-License-Identifier: MIT
 *
 * The embedder's memory, counted, and the spaces in which the objects of a stack lie.
 */
#include "heap_memory.h"

enum { FIRST_OBJECTS = 14, CHUNK_MAX = 1 << 15 }; /* in objects */

int incstack__heap_allocate(heap *h, size_t bytes, void **memory)
{
	const struct incstack_heap_options *o = &h->options;
	/* relaxed: a sum that guards nothing */
	size_t before = atomic_fetch_add_explicit(&h->bytes, bytes, memory_order_relaxed);
	const bool allowed = before <= o->memory_limit && bytes <= o->memory_limit - before;
	*memory = allowed ? o->memory(o->context, NULL, bytes) : NULL;
	if (*memory)
		return 0;
	atomic_fetch_sub_explicit(&h->bytes, bytes, memory_order_relaxed);
	return allowed ? INCSTACK_ENOMEM : INCSTACK_ELIMIT;
}

void incstack__heap_free(heap *h, void *memory, size_t bytes)
{
	atomic_fetch_sub_explicit(&h->bytes, bytes, memory_order_relaxed);
	h->options.memory(h->options.context, memory, bytes);
}

/* One user less. The last one frees the heap. */
void incstack__heap_drop(heap *h)
{
	/* acq_rel: what the other users did happened before the heap is freed. */
	if (atomic_fetch_sub_explicit(&h->users, 1, memory_order_acq_rel) == 1)
		incstack__heap_free(h, h, sizeof(*h));
}

static void use(struct arena *a, struct chunk *c)
{
	a->newest = c;
	a->next = chunk_objects(c);
	a->end = a->next + (c->bytes - (size_t)((char *)a->next - (char *)c)) / sizeof(object);
}

/* Allocates a chunk with room for so many objects, behind a head. */
static int allocate_chunk(heap *h, size_t head, size_t objects, void **memory)
{
	if (objects > (SIZE_MAX / 2 - head) / sizeof(object))
		return INCSTACK_ELIMIT;
	const size_t bytes = (head + 15) / 16 * 16 + objects * sizeof(object);
	int error = incstack__heap_allocate(h, bytes, memory);
	if (!error)
		((struct chunk *)*memory)->bytes = bytes;
	return error;
}

/* Puts a new space into *arena, whose content is lost. An error changes nothing. */
int incstack__heap_space_open(heap *h, struct arena *arena, size_t objects)
{
	void *memory;
	int error = allocate_chunk(h, sizeof(struct space), objects, &memory);
	if (error)
		return error;
	struct space *space = memory;
	space->oldest.older = NULL;
	space->oldest.before = 0;
	space->heap = h;
	space->newest = NULL;
	atomic_init(&space->balance, 0);
	atomic_fetch_add_explicit(&h->users, 1, memory_order_relaxed);
	*arena = (struct arena){.space = space};
	use(arena, &space->oldest);
	return 0;
}

static void free_space(struct space *space)
{
	heap *h = space->heap;
	for (struct chunk *c = space->newest, *older; c; c = older) {
		older = c->older;
		incstack__heap_free(h, c, c->bytes);
	}
	incstack__heap_drop(h);
}

/* The stack has no object in the arena's space any more. The last tree frees it, or this function. */
void incstack__heap_space_leave(struct arena *arena)
{
	const struct arena left = *arena;
	*arena = (struct arena){0};
	if (!left.space)
		return;
	left.space->newest = left.newest;
	/* acq_rel: whoever frees it sees `newest`, and has the last access of each tree behind it. */
	intptr_t balance =
		atomic_fetch_add_explicit(&left.space->balance, left.trees, memory_order_acq_rel);
	if (balance + left.trees == 0)
		free_space(left.space);
}

/* The stack does not need its objects any more. */
void incstack__heap_forget_objects(stack *s)
{
	incstack__heap_space_leave(&s->arena);
	s->scratch_end = NULL;
}

static void free_between(heap *h, struct chunk *newest, struct chunk *oldest)
{
	if (newest == oldest)
		return;
	for (struct chunk *c = newest->older, *older; c != oldest; c = older) {
		older = c->older;
		incstack__heap_free(h, c, c->bytes);
	}
	newest->older = oldest;
}

/* The same, but uses the newest chunk, which is the largest, again from its start, if all trees were
 * released. The oldest one stays, too, because the space lies there. */
void incstack__heap_use_again(stack *s)
{
	struct arena *a = &s->arena;
	s->scratch_end = NULL;
	if (!all_released(a)) {
		incstack__heap_space_leave(a);
		return;
	}
	free_between(s->heap, a->newest, &a->space->oldest);
	use(a, a->newest);
	a->newest->before = 0;
}

void incstack__heap_tree_dropped(struct space *space)
{
	if (atomic_fetch_sub_explicit(&space->balance, 1, memory_order_acq_rel) == 1)
		free_space(space);
}

/* Makes the next objects lie in a new chunk, which is as large as the space was. */
NOINLINE int incstack__heap_grow(stack *s, size_t objects)
{
	struct arena *a = &s->arena;
	const size_t now = used(a);
	size_t more = now < FIRST_OBJECTS ? FIRST_OBJECTS : now < CHUNK_MAX ? now : CHUNK_MAX;
	void *memory;
	int error;
	if (more < objects)
		more = objects;
	if (!a->space) {
		error = incstack__heap_space_open(s->heap, a, more);
	} else {
		error = allocate_chunk(s->heap, sizeof(struct chunk), more, &memory);
		if (error)
			return error;
		((struct chunk *)memory)->older = a->newest;
		((struct chunk *)memory)->before = now;
		use(a, memory);
	}
	s->scratch = a->next; /* what lies in older chunks stays */
	s->scratch_end = NULL;
	return error;
}

/* Removes what was allocated since then. */
void incstack__heap_go_back(stack *s, struct place to)
{
	struct arena *a = &s->arena;
	if (!to.newest) {
		incstack__heap_forget_objects(s);
		return;
	}
	while (a->newest != to.newest) {
		struct chunk *c = a->newest;
		a->newest = c->older;
		incstack__heap_free(s->heap, c, c->bytes);
	}
	use(a, a->newest);
	a->next = to.next;
}
