/* SPDX-License-Identifier: MIT
 *
 * For tests of mixed.h: an interpreter whose frames are nodes on the heap, and the state of both stacks.
 */
#ifndef TWO_STACKS_H
#define TWO_STACKS_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

#include <incstack/mixed.h>
#include <incstack/native.h>

#define NOINLINE __attribute__((noinline))

/* ck_assert writes to a file each time. */
#define REQUIRE(condition) \
	do { \
		if (!(condition)) \
			ck_abort_msg(#condition); \
	} while (0)

/* A frame of the interpreter. */
struct node {
	struct node *caller;
	uint32_t function, position;
	bool marked;
	const void *
		machine; /* the machine frame that runs this frame, of those the outermost; or null */
};

static struct incstack_runtime *runtime;
static struct incstack_stack *machine_stack;
static struct incstack_heap *heap;
static struct incstack_heap_stack *heap_stack;
static struct incstack_mixed mixed;
static struct node *top;
static bool no_memory, in_circle; /* anchors have their frame's name */
static const uint32_t distances[] = {0, 1, 2, 4, 61};

/* ---- the embedder ------------------------------------------------------------------ */

static uintptr_t walk(void *context, void *identity, uintptr_t name, struct incstack_heap_frame *f)
{
	const struct node *n = (const struct node *)(name & ~(uintptr_t)1);
	(void)context;
	(void)identity;
	if (name & 1) {
		f->function = (uintptr_t)n->machine;
		f->flags = INCSTACK_MIXED_ANCHOR;
		return (uintptr_t)n->caller;
	}
	f->function = n->function;
	f->position = n->position;
	f->flags = n->marked ? INCSTACK_HEAP_MARKED : 0;
	if (n->machine)
		return in_circle ? name : name | 1;
	return (uintptr_t)n->caller;
}

static int mark(void *context, void *identity, uintptr_t name, int on)
{
	(void)context;
	(void)identity;
	if (name & 1)
		return -1;
	((struct node *)name)->marked = on;
	return 0;
}

static void *memory(void *context, void *old, size_t bytes)
{
	(void)context;
	if (!old)
		return no_memory ? NULL : malloc(bytes);
	free(old);
	return NULL;
}

static void open_all(uint32_t distance, uint32_t mode)
{
	const struct incstack_options options = {
		.size = sizeof(options), .distance = distance, .mode = mode};
	const struct incstack_heap_options heap_options = {.size = sizeof(heap_options),
							   .walk = walk,
							   .mark = mark,
							   .memory = memory,
							   .mode = mode,
							   .distance = distance};
	ck_assert_int_eq(incstack_runtime_create_native(&options, &runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(runtime, &machine_stack), 0);
	ck_assert_int_eq(incstack_heap_create(&heap_options, &heap), 0);
	ck_assert_int_eq(incstack_heap_stack_create(heap, NULL, &heap_stack), 0);
	mixed = (struct incstack_mixed){.machine = machine_stack, .heap = heap_stack};
}

static void close_all(void)
{
	struct incstack_stats stats = {.size = sizeof(stats)};
	struct incstack_heap_stats heap_stats = {.size = sizeof(heap_stats)};
	ck_assert_int_eq(incstack_stack_stats(machine_stack, &stats), 0);
	ck_assert_int_eq(incstack_heap_stack_stats(heap_stack, &heap_stats), 0);
	ck_assert_uint_eq(stats.stale + stats.truncated, 0);
	ck_assert_uint_eq(heap_stats.stale + heap_stats.truncated, 0);
	ck_assert_ptr_null(mixed.kept);
	incstack_heap_destroy(heap);
	incstack_stack_destroy(machine_stack);
	incstack_runtime_destroy(runtime);
}
/* Its caller is the top of the machine's stack. */
static NOINLINE int sample_here(uintptr_t heap_top, uint64_t id)
{
	const uintptr_t *fp = __builtin_frame_address(0);
	const struct incstack_top here = {.pc = fp[1], .sp = (uintptr_t)(fp + 2), .fp = fp[0]};
	return incstack_mixed_sample(&mixed, &here, heap_top, id, id + 7);
}

/* ---- frames of the interpreter ---------------------------------------------------------- */

static void push_node(uint32_t function, uint32_t position)
{
	struct node *n = malloc(sizeof(*n));
	REQUIRE(n != NULL);
	*n = (struct node){.caller = top, .function = function, .position = position};
	top = n;
}

static void pop_node(void)
{
	struct node *gone = top;
	top = gone->caller;
	free(gone);
	if (top && top->marked) {
		top->marked = false;
		REQUIRE(incstack_heap_stack_returned(heap_stack, (uintptr_t)top) == 0);
	}
}

/* Drops the frames up to `end` without a report. */
static void drop_to(const struct node *end)
{
	while (top != end) {
		struct node *gone = top;
		top = gone->caller;
		free(gone);
	}
}

#endif
