/* SPDX-License-Identifier: MIT
 *
 * Memory for frame objects and traces, in chunks. Chunks are allocated by the embedder outside
 * samples; a sample uses them without a call to the embedder. Objects fill a chunk from its
 * start, traces from its end.
 */
#include "arena.h"

/* Allocates a chunk by the embedder, which may have an allocator only for traces. */
static void *allocate_chunk(runtime *rt, size_t bytes)
{
	if (rt->embedder.memory.allocate_traces)
		return rt->embedder.memory.allocate_traces(rt->context, bytes);
	return incstack__allocate(rt, bytes);
}

static void release_chunk(runtime *rt, void *memory, size_t bytes)
{
	if (rt->embedder.memory.release_traces)
		rt->embedder.memory.release_traces(rt->context, memory, bytes);
	else
		incstack__release(rt, memory, bytes);
}

/* Makes c the current chunk. The new chunk is made empty before it is linked, and the end of the
 * old chunk is recorded before the old chunk is left, because a jump out of a signal handler may
 * come between any two of these steps (I8). */
static void use(struct arena *a, struct chunk *c)
{
	c->next = NULL;
	c->tree.traces = NULL;
	c->objects = (object *)(((uintptr_t)(c + 1) + 31) & ~(uintptr_t)31);
	c->objects_end = c->objects;
	if (a->current)
		a->current->objects_end = chunk_end(a, a->current);
	atomic_signal_fence(memory_order_seq_cst);
	if (a->current)
		a->current->next = c;
	else
		a->first = c;
	atomic_signal_fence(memory_order_seq_cst);
	a->current = c;
	a->object = c->objects;
	a->limit = (trace *)((char *)c + c->bytes);
}

/* Repairs the arena after a jump out of use(). The contents of all chunks stay. If the arena's
 * pointers do not belong to the last chunk, the next object begins a new chunk. */
void incstack__arena_mend(struct arena *a)
{
	struct chunk *last = a->first;
	while (last && last->next)
		last = last->next;
	if (last && a->current == last && chunk_contains(last, a->object) &&
	    chunk_contains(last, a->limit))
		return;
	a->current = last;
	a->object = (object *)INCSTACK__NO_ROOM;
	a->limit = (trace *)INCSTACK__NO_ROOM;
}

/* Chunks of released trees are kept for the next trees, because the page faults of fresh memory
 * cost more than writing the traces. Nobody waits for kept_lock. Each acquire of it pairs with the
 * release of its last holder. */
enum { KEPT_MOST = 64 };

static struct chunk *take_kept(runtime *rt)
{
	struct chunk *c = NULL;
	if (atomic_flag_test_and_set_explicit(&rt->kept_lock, memory_order_acquire))
		return NULL; /* another thread has the lock; do not wait */
	c = rt->kept;
	if (c) {
		rt->kept = c->next;
		rt->kept_count--;
	}
	atomic_flag_clear_explicit(&rt->kept_lock, memory_order_release);
	return c;
}

static bool keep(runtime *rt, struct chunk *c)
{
	if (atomic_flag_test_and_set_explicit(&rt->kept_lock, memory_order_acquire))
		return false;
	bool room = rt->kept_count < KEPT_MOST;
	if (room) {
		c->next = rt->kept;
		rt->kept = c;
		rt->kept_count++;
	}
	atomic_flag_clear_explicit(&rt->kept_lock, memory_order_release);
	return room;
}

/* In the child of fork no other thread exists. If a thread of the parent held the lock, the
 * list may be half changed, so it is abandoned. */
void incstack__arena_forked(runtime *rt)
{
	if (atomic_flag_test_and_set_explicit(&rt->kept_lock, memory_order_relaxed)) {
		rt->kept = NULL;
		rt->kept_count = 0;
	}
	atomic_flag_clear_explicit(&rt->kept_lock, memory_order_relaxed);
}

void incstack__arena_free(runtime *rt, struct chunk *chunk)
{
	while (chunk) {
		struct chunk *next = chunk->next;
		if (!keep(rt, chunk))
			release_chunk(rt, chunk, chunk->bytes);
		chunk = next;
	}
}

void incstack__arena_close(runtime *rt)
{
	struct chunk *c;
	while ((c = take_kept(rt)) != NULL)
		release_chunk(rt, c, c->bytes);
}

/* Adds a spare chunk. `beyond_limit` allows it to exceed the limit of a stack. */
int incstack__arena_grow(runtime *rt, struct arena *a, bool beyond_limit)
{
	size_t bytes = rt->options.chunk_bytes;
	if (!beyond_limit && a->bytes + bytes > rt->options.stack_bytes)
		return INCSTACK_ELIMIT;
	struct chunk *c = take_kept(rt);
	if (!c)
		c = allocate_chunk(rt, bytes);
	if (!c)
		return INCSTACK_ENOMEM;
	c->bytes = bytes;
	c->runtime = rt;
	c->handed_over = false;
	c->next = a->spare;
	a->spare = c;
	a->spare_room += chunk_room(c);
	a->bytes += bytes;
	return 0;
}

/* Doubles the room, up to the limit of the stack. Returns an error if it could add none. */
int incstack__arena_double(runtime *rt, struct arena *a)
{
	const size_t before = arena_room(a);
	int error;
	do
		error = incstack__arena_grow(rt, a, false);
	while (!error && arena_room(a) < 2 * before);
	return arena_room(a) > before ? 0 : error;
}

/* Makes a spare chunk the current one. Returns false if there is none. */
bool incstack__arena_next(struct arena *a)
{
	struct chunk *c = a->spare;
	if (!c)
		return false;
	a->spare = c->next;
	a->spare_room -= chunk_room(c);
	use(a, c);
	return true;
}

/* Makes an empty arena ready for its first object. */
int incstack__arena_open(runtime *rt, struct arena *a)
{
	int error = a->spare ? 0 : incstack__arena_grow(rt, a, false);
	if (!error)
		incstack__arena_next(a);
	return error;
}

/* Drops what was written since *before was copied from the arena. Nothing may lead to it. */
void incstack__arena_go_back(struct arena *a, const struct arena *before)
{
	struct chunk *last = before->current;
	for (struct chunk *c = last->next, *next; c; c = next) {
		next = c->next;
		c->next = a->spare;
		a->spare = c;
		a->spare_room += chunk_room(c);
	}
	last->next = NULL;
	a->current = last;
	a->object = before->object;
	a->limit = before->limit;
	a->truncated = before->truncated;
}

/* Moves the chunks in use to *used. The spare chunks stay. */
void incstack__arena_split(struct arena *a, struct arena *used)
{
	*used = *a;
	*a = (struct arena){
		.spare = used->spare, .spare_room = used->spare_room, .bytes = used->bytes};
	used->spare = NULL;
	used->spare_room = 0;
	for (struct chunk *c = used->first; c; c = c->next)
		a->bytes -= c->bytes;
	used->bytes -= a->bytes;
}

/* Undoes incstack__arena_split, even if the arena was opened and filled since. What was
 * written into it since is dropped. */
void incstack__arena_join(struct arena *a, const struct arena *used)
{
	struct arena opened = *a;
	for (struct chunk *c = opened.first, *next; c; c = next) {
		next = c->next;
		c->next = opened.spare;
		opened.spare = c;
		opened.spare_room += chunk_room(c);
	}
	*a = *used;
	a->spare = opened.spare;
	a->spare_room = opened.spare_room;
	a->bytes += opened.bytes;
}
