/* SPDX-License-Identifier: MIT
 *
 * A stack of frames that a test builds by hand. The names of its frames are numbers: 1 is the outermost one.
 */
#ifndef BY_HAND_H
#define BY_HAND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <incstack/heap.h>

#include "../unit/run_suite.h"

enum { HAND_FRAMES = 4096 };

/* For what is called often: an assertion of Check writes to a pipe, also if it holds. */
#define HAND_REQUIRE(condition) ((condition) ? (void)0 : ck_abort_msg("%s", #condition))

static struct hand {
	struct {
		uint64_t function;
		uint32_t position;
		uint16_t kind, flags;
		bool marked, refuses;
	} frames[HAND_FRAMES + 1];
	uintptr_t top;
	uintptr_t unknown; /* the caller of this frame is unknown; 0: of none */
	uintptr_t circle;  /* the caller of this frame is `to`; 0: of none */
	uintptr_t to;
	_Atomic size_t allocated, blocks; /* a tree may be released by another thread */
	long fail_after;                  /* negative: no allocation fails */
	struct incstack_heap *heap;
	struct incstack_heap_stack *stack;
} hand;

static uintptr_t hand_walk(void *context, void *identity, uintptr_t name,
			   struct incstack_heap_frame *f)
{
	HAND_REQUIRE(context == &hand);
	HAND_REQUIRE(identity == &hand.stack);
	HAND_REQUIRE(name >= 1 && name <= hand.top);
	f->function = hand.frames[name].function;
	f->position = hand.frames[name].position;
	f->kind = hand.frames[name].kind;
	f->flags = hand.frames[name].flags;
	if (hand.frames[name].marked)
		f->flags |= INCSTACK_HEAP_MARKED;
	if (name == hand.unknown)
		return INCSTACK_HEAP_UNKNOWN;
	return name == hand.circle ? hand.to : name - 1;
}

static int hand_mark(void *context, void *identity, uintptr_t name, int on)
{
	HAND_REQUIRE(context == &hand);
	HAND_REQUIRE(identity == &hand.stack);
	HAND_REQUIRE(name >= 1 && name <= hand.top);
	if (hand.frames[name].refuses)
		return INCSTACK_EINVAL;
	hand.frames[name].marked = on;
	return 0;
}

static void *hand_memory(void *context, void *memory, size_t bytes)
{
	HAND_REQUIRE(context == &hand);
	if (memory) {
		hand.allocated -= bytes;
		hand.blocks--;
		memset(memory, 0x5a, bytes);
		free(memory);
		return NULL;
	}
	if (hand.fail_after == 0)
		return NULL;
	hand.fail_after -= hand.fail_after > 0;
	memory = malloc(bytes);
	HAND_REQUIRE(memory != NULL);
	hand.allocated += bytes;
	hand.blocks++;
	return memset(memory, 0xa5, bytes);
}

static inline struct incstack_heap_options hand_options(void)
{
	return (struct incstack_heap_options){.size = sizeof(struct incstack_heap_options),
					      .context = &hand,
					      .walk = hand_walk,
					      .mark = hand_mark,
					      .memory = hand_memory};
}

/* A heap with a stack that has no frames. */
static inline void hand_open_with(struct incstack_heap_options options)
{
	memset(&hand, 0, sizeof(hand));
	hand.fail_after = -1;
	ck_assert_int_eq(incstack_heap_create(&options, &hand.heap), 0);
	ck_assert_int_eq(incstack_heap_stack_create(hand.heap, &hand.stack, &hand.stack), 0);
}

static inline void hand_open(uint32_t mode, uint32_t distance)
{
	struct incstack_heap_options options = hand_options();
	options.mode = mode;
	options.distance = distance;
	hand_open_with(options);
}

static inline void hand_close(void)
{
	incstack_heap_stack_destroy(hand.stack);
	incstack_heap_destroy(hand.heap);
	ck_assert_uint_eq(hand.allocated, 0);
	ck_assert_uint_eq(hand.blocks, 0);
}

static inline void hand_call(uint64_t function)
{
	HAND_REQUIRE(hand.top < HAND_FRAMES);
	hand.top++;
	memset(&hand.frames[hand.top], 0, sizeof(hand.frames[0]));
	hand.frames[hand.top].function = function;
}

/* The functions 1, 2 and so on, each called by the one before. */
static inline void hand_calls(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		hand_call(hand.top + 1);
}

/* Returns from the youngest function, and reports what must be reported. */
static inline int hand_return(void)
{
	hand.top--;
	if (!hand.top || !hand.frames[hand.top].marked)
		return 0;
	hand.frames[hand.top].marked = false;
	return incstack_heap_stack_returned(hand.stack, hand.top);
}

static inline void hand_sample(uint64_t id)
{
	HAND_REQUIRE(incstack_heap_stack_sample(hand.stack, hand.top, id, 1) == 0);
}

static inline const struct incstack_heap_tree *hand_retrieve(void)
{
	const struct incstack_heap_tree *tree;
	HAND_REQUIRE(incstack_heap_stack_retrieve(hand.stack, hand.top, &tree) == 0);
	return tree;
}

static inline const struct incstack_heap_object *hand_trace(void)
{
	const struct incstack_heap_object *top;
	HAND_REQUIRE(incstack_heap_stack_trace(hand.stack, hand.top, &top) == 0);
	return top;
}

static inline struct incstack_heap_stats hand_stats(void)
{
	struct incstack_heap_stats stats = {.size = sizeof(stats)};
	ck_assert_int_eq(incstack_heap_stack_stats(hand.stack, &stats), 0);
	return stats;
}

/* The marked frames, as decimal digits, the outermost first. */
static inline unsigned hand_marks(void)
{
	unsigned digits = 0;
	for (uintptr_t name = 1; name <= hand.top; name++)
		if (hand.frames[name].marked)
			digits = digits * 10 + (unsigned)name;
	return digits;
}

/* The positions from `top` on, as decimal digits. */
static inline uint64_t hand_positions(const struct incstack_heap_object *top)
{
	uint64_t digits = 0;
	for (; top; top = top->parent)
		digits = digits * 10 + top->frame.position;
	return digits;
}

static inline unsigned hand_length(const struct incstack_heap_object *top)
{
	unsigned length = 0;
	for (; top; top = top->parent)
		length++;
	return length;
}

static inline const struct incstack_heap_object *hand_last(const struct incstack_heap_object *top)
{
	while (top->parent)
		top = top->parent;
	return top;
}

#endif
