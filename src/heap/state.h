/* SPDX-License-Identifier: MIT
 *
 * What is known of a stack whose frames lie on the heap, and how a call for it begins and ends.
 */
#ifndef INCSTACK__HEAP_STATE_H
#define INCSTACK__HEAP_STATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <incstack/heap.h>

typedef struct incstack_heap heap;
typedef struct incstack_heap_stack stack;
typedef struct incstack_heap_object object;
typedef struct incstack_heap_frame frame;
typedef struct incstack_heap_trace trace;

#if defined(__GNUC__)
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define LIKELY(condition) (condition)
#define NOINLINE
#define ALWAYS_INLINE inline
#endif

struct incstack_heap {
	struct incstack_heap_options options;
	_Atomic size_t bytes;   /* allocated, of all stacks and trees, and of itself */
	_Atomic intptr_t users; /* spaces, and 1 until it is destroyed; the last one frees it */
	stack *stacks;
};

/* The traces of one retrieve. It is made with the first of them. */
struct tree {
	struct incstack_heap_tree shown;
	struct space *space;
};

/* A piece of memory for objects, traces and trees. */
struct chunk {
	struct chunk *older;
	size_t bytes;
	size_t before; /* objects in the older chunks of the space */
};

/* Memory that a stack fills until compact.c leaves it for a new one. Trees may keep it longer. It lies at
 * the start of its oldest chunk. */
struct space {
	struct chunk oldest;
	heap *heap;
	struct chunk *newest; /* only set when the stack has left it */
	/* While the stack is here: how many trees were released, negative. After that: how many were
	 * not. So a retrieve need not touch it. */
	_Atomic intptr_t balance;
};

/* A frame with a mark. */
struct barrier {
	const object *at;
	uintptr_t caller; /* the caller's name while the callers are not captured (a gap); else 0 */
};

/* Where the next object goes, and the space that it belongs to. All null: no space. */
struct arena {
	object *next, *end;
	struct chunk *newest;
	struct space *space;
	intptr_t trees; /* made in this space */
};

/* A position in an arena, to which it can go back. */
struct place {
	object *next;
	struct chunk *newest;
};

enum { INLINE_BARRIERS = 2 };

struct incstack_heap_stack {
	struct arena arena;
	/* Nothing in the arena from `scratch` on is known, if the arena still ends at `scratch_end`. When
	 * the trees are released, the memory there is used again. */
	object *scratch, *scratch_end;
	struct tree *tree; /* the traces that were not retrieved; null: none */
	const trace **end; /* where the pointer to the next of them goes */
	struct barrier *barriers;
	uint32_t count; /* barriers */
	uint32_t room;  /* for barriers */
	uint32_t gaps;
	uint32_t distance; /* which caller of the top gets the mark */
	uint32_t credit;   /* how many frames more samples may walk before a mark is due */
	uint32_t hits;     /* returns since the last review */
	uint64_t
		review; /* heap_distance.c looks at the distance when so many samples were taken, */
	uint64_t reviewed; /* and did so last at this number */
	int32_t score;
	uint8_t quiet;  /* periods without many hits since the distance was last changed */
	uint8_t calm;   /* after so many of them a smaller distance is tried */
	uint8_t before; /* the distance before the last change, if that made it smaller; else 0 */
	bool adaptive;
	uint8_t mode;
	bool checks;           /* INCSTACK_HEAP_CHECK_OWNER */
	_Atomic uint32_t busy; /* 32 bits: the smallest atomic type without a library everywhere */
	heap *heap;
	void *identity;
	uint64_t all_new;         /* samples that met no known callers */
	const object *remembered; /* mode VALIDATE: the top of the last sample, or null */
	uint32_t depth;           /* its frames */
	uint32_t walk;            /* the frames of the longest walk since the last copy */
	size_t copy_at;           /* objects in the space from which compact.c copies */
	_Atomic uintptr_t owner;
	stack *older, *younger; /* of the heap's stacks */
	struct barrier few[INLINE_BARRIERS];
	_Atomic uint32_t busy_count;
	struct incstack_heap_stats stats;
};

uintptr_t incstack__heap_thread_self(void);
int incstack__heap_take_busy(stack *s);
int incstack__heap_enter_slowly(stack *s);

/* No call is in progress, and nothing must be checked. */
static inline bool is_free(stack *s)
{
	return s && !s->checks && !atomic_load_explicit(&s->busy, memory_order_relaxed);
}

static inline int enter(stack *s)
{
	if (!LIKELY(is_free(s)))
		return incstack__heap_enter_slowly(s);
	atomic_store_explicit(&s->busy, 1, memory_order_relaxed);
	return 0;
}

static inline void leave(stack *s)
{
	/* release: pairs with the exchange in enter_slowly, if another thread comes next. */
	atomic_store_explicit(&s->busy, 0, memory_order_release);
}

static inline bool is_name(uintptr_t name)
{
	return name != 0 && name != INCSTACK_HEAP_UNKNOWN;
}

static inline uintptr_t walk_step(const stack *s, uintptr_t name, frame *f)
{
	const struct incstack_heap_options *o = &s->heap->options;
	*f = (frame){.name = name};
	return o->walk(o->context, s->identity, name, f);
}

static inline int set_mark(stack *s, uintptr_t name, int on)
{
	const struct incstack_heap_options *o = &s->heap->options;
	return o->mark(o->context, s->identity, name, on);
}

#endif
