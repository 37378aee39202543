/* SPDX-License-Identifier: MIT
 *
 * For tests on the machine stack with unwind rules: takes every sample together with a full walk
 * by libunwind, and compares every retrieved trace with that walk frame by frame. A truncated
 * trace must be a prefix.
 */
#ifndef TRACED_H
#define TRACED_H

#include <check.h>
#include <stdint.h>
#include <string.h>

#include <incstack/native.h>

#include "trace/hooks.h"

enum { TRACED_FRAMES = 1 << 19, TRACED_SAMPLES = 1 << 14, TRACED_DEPTH = 1 << 17 };

static struct incstack_runtime *traced_runtime;
static struct incstack_stack *traced_stack;
static struct incstack_frame traced_frames[TRACED_FRAMES];
static int traced_first[TRACED_SAMPLES + 1]; /* of the frames of a sample */
static int traced_samples;

static inline void traced_open(unsigned distance, enum incstack_mode mode)
{
	struct incstack_options options = {};
	options.size = sizeof(options);
	options.distance = distance;
	options.mode = mode;
	traced_samples = 0;
	ck_assert_int_eq(incstack_runtime_create_native(&options, &traced_runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(traced_runtime, &traced_stack), 0);
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 1 << 19), 0);
}

/* The first frame is the caller of this function. */
__attribute__((noinline, unused)) static void traced_sample(void)
{
	int first = traced_first[traced_samples], room = TRACED_FRAMES - first;
	ck_assert_int_lt(traced_samples, TRACED_SAMPLES);
	int count = incstack_native_walk(traced_frames + first,
					 room < TRACED_DEPTH ? room : TRACED_DEPTH);
	ck_assert_int_gt(count, 2);
	ck_assert_int_lt(count, room);
	struct incstack_top top = {};
	top.pc = traced_frames[first + 1].pc;
	top.sp = traced_frames[first + 1].sp;
	top.fp = traced_frames[first + 1].fp;
	traced_first[traced_samples + 1] = first + count;
	ck_assert_int_eq(incstack_stack_sample(traced_stack, (uint64_t)traced_samples, 1, &top), 0);
	traced_samples++;
}

/* Whether the trace is its reference, or, if truncated, a prefix of it. */
static inline int traced_agrees(const struct incstack_trace *t, int *truncated)
{
	int at = traced_first[t->id] + 1, end = traced_first[t->id + 1];
	for (const struct incstack_frame_object *o = t->top; o; o = o->parent, at++) {
		if (at == end || traced_frames[at].pc != o->function ||
		    traced_frames[at].sp != o->address)
			return 0;
		if (o->flags & INCSTACK_OBJECT_TRUNCATED)
			return !o->parent ? ++*truncated : 0;
	}
	return at == end;
}

/* Retrieves, compares, and returns how many traces are truncated. */
static inline int traced_check(void)
{
	struct incstack_tree *tree;
	int truncated = 0;
	ck_assert_int_eq(incstack_stack_retrieve(traced_stack, &tree), 0);
	ck_assert_uint_eq(tree->count, (uint64_t)traced_samples);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		ck_assert_msg(traced_agrees(t, &truncated), "trace %d of %d", (int)t->id,
			      traced_samples);
	ck_assert_int_eq(truncated > 0, tree->truncated > 0);
	incstack_tree_release(tree);
	traced_samples = 0;
	return truncated;
}

static inline struct incstack_stats traced_stats(void)
{
	struct incstack_stats stats = {};
	stats.size = sizeof(stats);
	ck_assert_int_eq(incstack_stack_stats(traced_stack, &stats), 0);
	return stats;
}

static inline void traced_close(void)
{
	ck_assert_int_eq(incstack__stack_verify(traced_stack), 0);
	incstack_stack_destroy(traced_stack);
	incstack_runtime_destroy(traced_runtime);
}

#endif
