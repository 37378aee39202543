/* SPDX-License-Identifier: MIT
 *
 * For tests on real stacks: takes samples together with full walks by libunwind, and compares
 * the traces with those walks.
 */
#ifndef CHECKED_H
#define CHECKED_H

#include <check.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include <incstack/native.h>

#include "trace/hooks.h"
#include "../unit/sample_native.h"

#define OPAQUE __attribute__((noinline))
enum { CHECKED_MAX = 1 << 14, CHECKED_FRAMES = 512 };

struct checked_walk {
	int count;
	struct incstack_frame *frames; /* the first is that of sample_checked */
};

static struct checked_walk checked_walks[CHECKED_MAX];
static atomic_uint_fast64_t checked_count;
static atomic_uint_fast64_t checked_compared;
static struct incstack_runtime *checked_runtime;

static inline void checked_open(uint32_t mode, unsigned distance)
{
	const struct incstack_options options = {
		.size = sizeof(options), .mode = mode, .distance = distance};

	ck_assert_int_eq(incstack_runtime_create_native(&options, &checked_runtime), 0);
}

static inline struct incstack_stack *checked_thread(void)
{
	struct incstack_stack *stack = NULL;

	ck_assert_int_eq(incstack_stack_create_native(checked_runtime, &stack), 0);
	ck_assert_int_eq(incstack_stack_reserve(stack, 1 << 20), 0);
	return stack;
}

static inline struct incstack_stats checked_stats(const struct incstack_stack *stack)
{
	struct incstack_stats stats = {.size = sizeof(stats)};

	ck_assert_int_eq(incstack_stack_stats(stack, &stats), 0);
	return stats;
}

/* Samples its own frame. Returns what the sample does. */
static OPAQUE int sample_checked(struct incstack_stack *stack)
{
	struct incstack_frame frames[CHECKED_FRAMES];
	const uint64_t id = checked_count++;
	struct checked_walk *walk = &checked_walks[id];

	ck_assert_uint_lt(id, CHECKED_MAX);
	walk->count = incstack_native_walk(frames, CHECKED_FRAMES);
	ck_assert_int_gt(walk->count, 1);
	walk->frames = malloc((size_t)walk->count * sizeof(*frames));
	ck_assert_ptr_nonnull(walk->frames);
	for (int i = 0; i < walk->count; i++)
		walk->frames[i] = frames[i];
	return sample_native(stack, id, 1);
}

static inline void compare_trace(const struct incstack_trace *trace)
{
	const struct checked_walk *walk = &checked_walks[trace->id];
	const struct incstack_frame_object *object = trace->top;
	int i = 0;

	for (; object; object = object->parent, i++) {
		ck_assert_int_lt(i, walk->count);
		ck_assert_uint_eq(object->address, walk->frames[i].sp);
		/* The two calls in sample_checked stand at two places. */
		if (i > 0)
			ck_assert_uint_eq(object->function, walk->frames[i].pc);
		if (object->flags & INCSTACK_OBJECT_TRUNCATED)
			return;
	}
	ck_assert_int_eq(i, walk->count);
}

/* Retrieves and compares; returns how many traces are truncated. */
static inline uint64_t compare_all(struct incstack_stack *stack)
{
	struct incstack_tree *tree = NULL;
	uint64_t truncated;

	ck_assert_int_eq(incstack_stack_retrieve(stack, &tree), 0);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		compare_trace(t);
	checked_compared += tree->count;
	truncated = tree->truncated;
	incstack_tree_release(tree);
	ck_assert_int_eq(incstack__stack_verify(stack), 0);
	return truncated;
}

/* Each walk has had its trace. */
static inline void checked_close(struct incstack_stack *stack)
{
	if (stack) {
		compare_all(stack);
		incstack_stack_destroy(stack);
	}
	incstack_runtime_destroy(checked_runtime);
	ck_assert_uint_eq(checked_compared, checked_count);
}

#endif
