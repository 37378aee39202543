/* SPDX-License-Identifier: MIT
 *
 * Stacks that only the embedder can walk: a small interpreter whose frames are nodes on the
 * heap. Each frame holds its position and a flag for a return barrier. A random program calls,
 * returns, throws, moves frames, and leaves frames unannounced. Every trace is compared with the
 * stack at the time of its request.
 */
#ifndef HEAP_FRAMES_H
#define HEAP_FRAMES_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/incstack.h>

#include "trace/hooks.h"

/* A frame: its name is its address, its position changes while it runs. An inlined
 * frame stands for two functions. */
struct node {
	struct node *caller;
	uint64_t function;
	int32_t position;
	bool armed;
	bool inlined;
	bool gone; /* popped: its caller must not be requested */
};

enum { TRACES = 64, DEPTH_MAX = 200, STEPS = 10000 };

static struct incstack_runtime *rt;
static struct incstack_stack *s;
static struct node *top, *free_nodes;
static unsigned depth;
static int no_arms;             /* one of so many frames refuses a barrier */
static const struct node *wall; /* its caller is unknown */
static bool all_exact;          /* positions are current ones, not those of returns */
static bool careless;           /* frees armed frames without an announcement */
static bool tells_youngest;     /* lets retrieve notice that by itself */
static uint64_t next_function, armed_now, arms;

/* What the stack held at each sample that was not retrieved yet. */
static struct record {
	unsigned count;
	struct incstack_virtual_frame frames[2 * DEPTH_MAX + 4];
} records[TRACES + 1];
static unsigned record_count;

static inline uint64_t random_below(uint64_t n)
{
	static uint64_t x = 88172645463325252u;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x % n;
}

static inline struct node *node_of(uintptr_t frame)
{
	return (struct node *)frame;
}

/* ---- the embedder ---------------------------------------------------------------- */

static inline int walk_to_caller(void *context, void *identity, struct incstack_frame *frame)
{
	ck_assert_ptr_eq(identity, &rt);
	(void)context;
	const struct node *caller = node_of(frame->sp)->caller;
	ck_assert(!node_of(frame->sp)->gone);
	if (wall && node_of(frame->sp) == wall)
		return INCSTACK_EUNWIND;
	if (!caller)
		return 0;
	frame->pc = 1;
	frame->sp = (uintptr_t)caller;
	frame->flags = INCSTACK_FRAME_DECODE_NOW | (all_exact ? INCSTACK_FRAME_EXACT : 0) |
		       (caller->armed ? INCSTACK_FRAME_ARMED : 0);
	return 1;
}

static inline int tell_youngest(void *context, void *identity, struct incstack_frame *frame)
{
	ck_assert_ptr_eq(identity, &rt);
	(void)context;
	frame->pc = 1;
	frame->sp = (uintptr_t)top;
	frame->flags = INCSTACK_FRAME_DECODE_NOW | (top && top->armed ? INCSTACK_FRAME_ARMED : 0);
	return top != NULL;
}

static inline int arm(void *context, void *identity, uintptr_t frame)
{
	(void)context;
	(void)identity;
	ck_assert(!node_of(frame)->armed);
	if (no_arms && node_of(frame)->function % (uint64_t)no_arms == 0)
		return INCSTACK_EUNWIND;
	node_of(frame)->armed = true;
	armed_now++;
	arms++;
	return 0;
}

static inline void disarm(void *context, void *identity, uintptr_t frame)
{
	(void)context;
	(void)identity;
	ck_assert(node_of(frame)->armed);
	node_of(frame)->armed = false;
	armed_now--;
}

/* The frame as it is, for the library and for the oracle. */
static inline int decode_node(const struct node *n, struct incstack_virtual_frame *out)
{
	out[0] = (struct incstack_virtual_frame){.function = n->function, .position = n->position};
	out[1] = (struct incstack_virtual_frame){.function = n->function + 1,
						 .position = n->position / 2};
	return n->inlined ? 2 : 1;
}

static inline int decode(void *context, const struct incstack_frame *frame,
			 struct incstack_virtual_frame *out, int max)
{
	(void)context;
	ck_assert_int_ge(max, 2);
	return decode_node(node_of(frame->sp), out);
}

/* ---- the interpreter ------------------------------------------------------------- */

static inline void call(void)
{
	struct node *n = free_nodes;
	if (n)
		free_nodes = n->caller;
	else
		n = malloc(sizeof(*n));
	*n = (struct node){top,  next_function += 2, (int32_t)random_below(100), false, false,
			   false};
	n->inlined = random_below(4) == 0;
	top = n;
	depth++;
}

static inline void tell(struct node *n)
{
	if (!n->armed)
		return;
	n->armed = false;
	armed_now--;
	ck_assert_int_eq(incstack_stack_returned(s, (uintptr_t)n), 0);
}

static inline void pop(void)
{
	struct node *n = top;
	top = n->caller;
	n->gone = true;
	n->caller = free_nodes;
	free_nodes = n;
	depth--;
}

/* The caller runs on: its position changes, but only after it was reported. */
static inline void return_to_caller(void)
{
	pop();
	tell(top);
	top->position = (int32_t)random_below(100);
}

static inline void throw_exception(unsigned frames)
{
	while (frames-- && depth > 1) {
		pop();
		if (!careless)
			tell(top);
		else if (top->armed && depth > 1)
			armed_now--;
	}
	if (careless)
		tell(top);
	top->position = -5;
}

/* The collector moves a frame. */
static inline void move_frame(void)
{
	struct node **link = &top;
	for (uint64_t i = random_below(depth); i; i--)
		link = &(*link)->caller;
	struct node *old = *link, *copy = malloc(sizeof(*copy));
	*copy = *old;
	*link = copy;
	ck_assert_int_eq(incstack_stack_frame_moved(s, (uintptr_t)old, (uintptr_t)copy), 0);
	free(old);
}

static inline void sample(void)
{
	struct record *r = &records[record_count];
	struct incstack_top t = {.sp = (uintptr_t)top,
				 .flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_DECODE_NOW};
	r->count = 0;
	for (const struct node *n = top; n; n = n->caller)
		r->count += (unsigned)decode_node(n, &r->frames[r->count]);
	ck_assert_int_eq(incstack_stack_sample(s, record_count++, 1, &t), 0);
}

/* Returns how many frames of the oracle a truncated trace did not see. */
static inline unsigned compare(const struct incstack_trace *t)
{
	const struct record *r = &records[t->id];
	unsigned i = 0;
	bool truncated = false;
	for (const struct incstack_frame_object *o = t->top; o; o = o->parent, i++) {
		ck_assert_uint_lt(i, r->count);
		truncated = o->flags & INCSTACK_OBJECT_TRUNCATED;
		/* Of the frame that vanished it is known that it existed, but not at which
		 * position. */
		bool raw = truncated && o->flags & INCSTACK_OBJECT_RAW;
		ck_assert_uint_eq(o->function, raw ? 1 : r->frames[i].function);
		ck_assert_int_eq(o->position, raw ? -1 : r->frames[i].position);
		ck_assert_int_eq(!o->parent, truncated || o->flags & INCSTACK_OBJECT_BASE);
	}
	ck_assert(truncated || i == r->count);
	return r->count - i;
}

static inline unsigned retrieve(void)
{
	struct incstack_tree *tree;
	unsigned missing = 0;
	if (careless && !tells_youngest) /* only a walk from the top notices */
		sample();
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->count, record_count);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		missing += compare(t);
	incstack_tree_release(tree);
	ck_assert_int_eq(incstack__stack_verify(s), 0);
	ck_assert_int_eq(incstack_stack_reserve(s, 1 << 20), 0);
	record_count = 0;
	return missing;
}

static inline void step(void)
{
	uint64_t dice = random_below(100);
	if (dice < 40 && depth < DEPTH_MAX)
		call();
	else if (dice < 75 && depth > 1)
		return_to_caller();
	else if (dice < 78)
		throw_exception((unsigned)random_below(8));
	else if (dice < 80 && !careless)
		move_frame();
	else if (record_count < TRACES)
		sample();
}

/* ---- tests ----------------------------------------------------------------------- */

static inline struct incstack_stats stats_of_stack(void)
{
	struct incstack_stats stats = {.size = sizeof(stats)};
	ck_assert_int_eq(incstack_stack_stats(s, &stats), 0);
	return stats;
}

static bool no_memory;

static inline void *allocate(void *context, size_t bytes)
{
	(void)context;
	return no_memory ? NULL : malloc(bytes);
}

static inline void release(void *context, void *memory, size_t bytes)
{
	(void)context;
	(void)bytes;
	free(memory);
}

static struct incstack_stack_walker walker = {
	.size = sizeof(walker), .caller = walk_to_caller, .arm = arm, .disarm = disarm};

static inline void setup_with(struct incstack_options options)
{
	struct incstack_embedder embedder = {.size = sizeof(embedder),
					     .code.frame_pointers = 1,
					     .code.decode = decode,
					     .memory.allocate = allocate,
					     .memory.release = release};
	walker.youngest = tells_youngest ? tell_youngest : NULL;
	options.size = sizeof(options);
	options.embedder = &embedder;
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
	ck_assert_int_eq(incstack_stack_create_embedder(rt, &walker, &rt, &s), 0);
	if (!options.chunk_bytes)
		ck_assert_int_eq(incstack_stack_reserve(s, 1 << 20), 0);
	call();
}

static inline void setup(unsigned distance, uint32_t mode)
{
	setup_with((struct incstack_options){.distance = distance, .mode = mode});
}

static inline void teardown(void)
{
	ck_assert_uint_eq(incstack__stack_broken(s), 0);
	incstack_stack_destroy(s);
	incstack_runtime_destroy(rt);
	while (depth)
		pop();
	for (struct node *n = free_nodes, *next; n; n = next) {
		next = n->caller;
		free(n);
	}
	free_nodes = NULL;
}

static inline unsigned run(void)
{
	unsigned missing = 0;
	for (int i = 0; i < STEPS; i++) {
		step();
		if (record_count == TRACES)
			missing += retrieve();
	}
	return missing + retrieve();
}

static const unsigned distances[] = {1, 2, 3, 6, 41, 0};

#endif
