/* SPDX-License-Identifier: MIT
 *
 * The embedder's memory, counted, and the spaces in which the objects of a stack lie.
 */
#ifndef INCSTACK__HEAP_MEMORY_H
#define INCSTACK__HEAP_MEMORY_H

#include "state.h"

/* How many objects take the place of one thing of this size. */
#define SLOTS(size) (((size) + sizeof(object) - 1) / sizeof(object))

int incstack__heap_allocate(heap *h, size_t bytes, void **memory);
void incstack__heap_free(heap *h, void *memory, size_t bytes);
void incstack__heap_drop(heap *h);
int incstack__heap_space_open(heap *h, struct arena *arena, size_t objects);
void incstack__heap_space_leave(struct arena *arena);
void incstack__heap_forget_objects(stack *s);
void incstack__heap_use_again(stack *s);
void incstack__heap_tree_dropped(struct space *space);
int incstack__heap_grow(stack *s, size_t objects);
void incstack__heap_go_back(stack *s, struct place to);

static inline int reserve(stack *s, size_t objects)
{
	if (LIKELY((size_t)(s->arena.end - s->arena.next) >= objects))
		return 0;
	return incstack__heap_grow(s, objects);
}

/* Makes a tree without traces. There is room for it. */
static inline void open_tree(stack *s)
{
	s->tree = (struct tree *)(void *)s->arena.next;
	s->arena.next += SLOTS(sizeof(struct tree));
	*s->tree = (struct tree){.space = s->arena.space};
	s->end = &s->tree->shown.traces;
}

static inline struct place place_of(const stack *s)
{
	return (struct place){s->arena.next, s->arena.newest};
}

static inline object *chunk_objects(struct chunk *c)
{
	size_t head = c->older ? sizeof(struct chunk) : sizeof(struct space);
	return (object *)(void *)((char *)c + (head + 15) / 16 * 16);
}

/* Nobody but the stack has anything in its space. */
static inline bool all_released(const struct arena *a)
{
	/* acquire: the last access of each tree comes before the memory is written. */
	return atomic_load_explicit(&a->space->balance, memory_order_acquire) == -a->trees;
}

/* Objects, and what takes their place, in the space. */
static inline size_t used(const struct arena *a)
{
	return a->newest ? a->newest->before + (size_t)(a->next - chunk_objects(a->newest)) : 0;
}

#endif
