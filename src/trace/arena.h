/* SPDX-License-Identifier: MIT
 *
 * Memory for the frame objects and traces of one stack, in chunks.
 */
#ifndef INCSTACK__ARENA_H
#define INCSTACK__ARENA_H

#include "runtime.h"

/* A unit of the memory for traces: objects grow up from the start, traces down
 * from the end. */
struct chunk {
	struct chunk *next;
	size_t bytes;
	object *objects; /* the first object, and their end when the chunk was left */
	object *objects_end;
	struct incstack_tree tree; /* only used in the first chunk: incstack_stack_tree */
	runtime *runtime;
	bool handed_over; /* only used in the first chunk: the tree was retrieved, not released */
};
static inline bool chunk_contains(const struct chunk *c, const void *p)
{
	return (uintptr_t)p - (uintptr_t)c <= c->bytes;
}
static inline size_t chunk_room(const struct chunk *c)
{
	return c->bytes - sizeof(*c);
}
/* The position of objects and traces in an arena that has no room for any request. */
#define INCSTACK__NO_ROOM 4096

struct arena {
	uint64_t spare_room; /* bytes for objects and traces in the empty chunks */
	object *object;      /* the next free one */
	trace *limit;        /* the last allocated trace; free memory ends here */
	struct chunk *current;
	struct chunk *first;
	struct chunk *spare; /* empty chunks */
	uint64_t bytes;      /* of all chunks */
	uint64_t truncated;  /* objects whose callers are unknown */
};

static inline object *chunk_end(const struct arena *a, const struct chunk *c)
{
	return chunk_contains(c, a->object) ? a->object : c->objects_end;
}

int incstack__arena_grow(runtime *rt, struct arena *a, bool beyond_limit);
bool incstack__arena_next(struct arena *a);
int incstack__arena_double(runtime *rt, struct arena *a);
int incstack__arena_open(runtime *rt, struct arena *a);
void incstack__arena_go_back(struct arena *a, const struct arena *before);
void incstack__arena_mend(struct arena *a);
void incstack__arena_split(struct arena *a, struct arena *used);
void incstack__arena_join(struct arena *a, const struct arena *used);
void incstack__arena_free(runtime *rt, struct chunk *chunk);
void incstack__arena_close(runtime *rt);
void incstack__arena_forked(runtime *rt); /* in the child of fork */

/* Bytes that are left for objects and traces. */
static inline size_t arena_room(const struct arena *a)
{
	return a->spare_room + (size_t)((char *)a->limit - (char *)a->object);
}

/* The most bytes that the objects of all frames in a part of a stack can take. The smallest frame
 * has 16 bytes, its object 32. */
static inline size_t frames_room(uintptr_t part)
{
	return part * (sizeof(object) / 16);
}

static inline bool arena_fits(const struct arena *a, size_t objects)
{
	const char *end = (const char *)a->limit - sizeof(trace);
	return (const char *)(a->object + objects) <= end;
}

/* Returns a new object, or null if there is no room. With `grow`, it may allocate memory,
 * even beyond the stack's limit, because sampled traces must be completed. The object is
 * complete before it is counted (I8). */
static inline object *arena_object(runtime *rt, struct arena *a, bool grow, object value)
{
	if (__builtin_expect(!arena_fits(a, 1), 0) && !incstack__arena_next(a) &&
	    !(grow && !incstack__arena_grow(rt, a, true) && incstack__arena_next(a)))
		return NULL;
	*a->object = value;
	atomic_signal_fence(memory_order_seq_cst);
	return a->object++;
}

#endif
