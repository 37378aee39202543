/* SPDX-License-Identifier: MIT
 *
 * Compares the partial calling context tree with a direct implementation of figure 7 of Whaley
 * 2000: marks in the frames of a simulated stack, a buffer of limited size, one node for each
 * context. Contexts, time, edge weights and the numbers of activations must be equal, for each
 * depth limit and number of samples per retrieve.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/embedder.h>
#include <incstack/pcct.h>

#include "find_context.h"
#include "run_suite.h"

enum { DEEPEST = 48, METHODS = 5, SITES = 2, NODES = 40000, BUCKETS = 1 << 17 };

/* The stack grows towards lower addresses, so that those are used again and again. */
struct activation {
	uint64_t function;
	int32_t position, site; /* the position now, and that of the caller at the call */
	bool armed, visited;
	int caller_node; /* what get_node finds; with `visited` */
};

/* [DEEPEST - 1] is the base; [top] runs. */
static struct activation frames[DEEPEST];
static int top;
static struct incstack_stack *stack;
static uint64_t random_state;

static uint32_t draw(uint32_t limit)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % limit;
}

/* ---- the embedder ---- */

static uintptr_t address_of(int frame)
{
	return (uintptr_t)&frames[frame];
}

static int index_of(uintptr_t address)
{
	return (int)((struct activation *)address - frames);
}

static int caller(void *context, void *inner, struct incstack_frame *frame)
{
	int next = index_of(frame->sp) + 1;

	(void)context, (void)inner;
	if (next == DEEPEST)
		return 0;
	frame->pc = 1;
	frame->sp = address_of(next);
	frame->flags = INCSTACK_FRAME_DECODE_NOW |
		       (frames[next].armed ? (uint32_t)INCSTACK_FRAME_ARMED : 0);
	return 1;
}

static int arm(void *context, void *inner, uintptr_t frame)
{
	(void)context, (void)inner;
	frames[index_of(frame)].armed = true;
	return 0;
}

static void disarm(void *context, void *inner, uintptr_t frame)
{
	(void)context, (void)inner;
	frames[index_of(frame)].armed = false;
}

static int decode(void *context, const struct incstack_frame *frame,
		  struct incstack_virtual_frame *out, int max)
{
	const struct activation *a = &frames[index_of(frame->sp)];

	(void)context, (void)max;
	out[0] = (struct incstack_virtual_frame){.function = a->function, .position = a->position};
	return 1;
}

static void enter(void)
{
	int32_t site = top < DEEPEST ? frames[top].position : -1;

	frames[--top] = (struct activation){
		.function = 1 + draw(METHODS), .position = (int32_t)draw(SITES), .site = site};
}

static void leave(void)
{
	top++;
	if (frames[top].armed) {
		frames[top].armed = false;
		ck_assert_int_eq(incstack_stack_returned(stack, address_of(top)), 0);
	}
	frames[top].position = (int32_t)draw(SITES);
}

/* ---- figure 7 ---- */

struct node {
	int parent;
	int32_t site;
	uint64_t function, time, edge, activations;
	uint32_t context; /* the tree's */
};

static struct node nodes[NODES];
static int node_count, buckets[BUCKETS];
static uint64_t unconnected;

static int get(int parent, int32_t site, uint64_t function)
{
	uint64_t hash = ((uint64_t)(parent + 1) * 31 + (uint64_t)(site + 1)) * 31 + function;

	for (hash = hash * 0x9e3779b97f4a7c15u >> 40;; hash++) {
		int *bucket = &buckets[hash % BUCKETS];

		if (!*bucket) {
			ck_assert_int_lt(node_count, NODES);
			nodes[node_count] = (struct node){parent, site, function, 0, 0, 0, 0};
			*bucket = ++node_count;
		}
		const struct node *node = &nodes[*bucket - 1];
		if (node->parent == parent && node->site == site && node->function == function)
			return *bucket - 1;
	}
}

static void update_pcct(uint64_t weight, int buffer_size)
{
	int buffer[DEEPEST], used = 0, n1 = -1, fresh = 0, f = top;
	bool known = false;

	while (used < buffer_size && f < DEEPEST && !known) { /* upwards */
		buffer[used++] = f;
		known = frames[f].visited;
		if (known)
			n1 = frames[f].caller_node;
		else
			fresh++;
		frames[f].visited = true;
		f++;
	}
	if (!known && f < DEEPEST) { /* the way ends here, with a node of its own */
		n1 = get(-1, -1, frames[f].function);
		unconnected++;
	}
	for (int i = used - 1; i >= 0; i--) { /* downwards */
		const struct activation *a = &frames[buffer[i]];

		frames[buffer[i]].caller_node = n1;
		n1 = get(n1, n1 < 0 ? -1 : a->site, a->function);
		nodes[n1].edge += weight;
		nodes[n1].activations += i < fresh ? weight : 0;
	}
	nodes[n1].time += weight;
}

/* ---- one against the other ---- */

static void retrieve(struct incstack_pcct *pcct)
{
	struct incstack_tree *tree;

	ck_assert_int_eq(incstack_stack_retrieve(stack, &tree), 0);
	ck_assert_int_eq(incstack_pcct_add_tree(pcct, tree), 0);
	incstack_tree_release(tree);
}

static void sample(uint64_t weight, int limit)
{
	const struct incstack_top here = {.sp = address_of(top),
					  .flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_DECODE_NOW};

	ck_assert_int_eq(incstack_stack_reserve(stack, 1 << 14), 0);
	ck_assert_int_eq(incstack_stack_sample(stack, 0, weight, &here), 0);
	update_pcct(weight, limit ? limit : DEEPEST);
}

static void compare(const struct incstack_pcct *pcct)
{
	struct incstack_pcct_stats stats = {.size = sizeof(stats)};

	ck_assert_int_eq(incstack_pcct_stats(pcct, &stats), 0);
	ck_assert_uint_eq(stats.unconnected, unconnected);
	ck_assert_uint_eq(stats.contexts, (uint32_t)node_count);
	for (int i = 0; i < node_count; i++) { /* parents come first */
		struct node *n = &nodes[i];
		struct incstack_pcct_context context = {.size = sizeof(context)};
		uint32_t parent = n->parent < 0 ? INCSTACK_PCCT_NONE : nodes[n->parent].context;

		n->context = find_context(pcct, parent, n->site, n->function);
		ck_assert_int_eq(
			incstack_pcct_context(pcct, INCSTACK_PCCT_BY_NUMBER, n->context, &context),
			0);
		ck_assert_uint_eq(context.time, n->time);
		ck_assert_uint_eq(context.calls, n->edge);
		ck_assert_uint_eq(context.activations, n->activations);
	}
}

/* Up for a while, down for a while: with many moves at a time frames are passed over, and with few
 * they are on top later. */
static void go_on(int i)
{
	uint32_t calls = i / 64 % 2 ? 54 : 46, most = i / 16 % 2 ? 3 : 24;

	for (uint32_t k = draw(most); k; k--)
		if (draw(100) < calls ? top > 0 : top == DEEPEST - 1)
			enter();
		else if (top < DEEPEST - 1)
			leave();
}

static void check(uint64_t seed, int limit, int per_retrieve, int samples)
{
	const struct incstack_embedder embedder = {.size = sizeof(embedder), .code.decode = decode};
	static const struct incstack_stack_walker walker = {sizeof(walker), caller, arm, disarm,
							    NULL};
	const struct incstack_options options = {.size = sizeof(options),
						 .distance = 1,
						 .embedder = &embedder,
						 .mode = INCSTACK_MODE_PATCH};
	const struct incstack_pcct_options size = {
		.size = sizeof(size), .contexts = NODES, .depth = (uint32_t)limit};
	struct incstack_runtime *runtime;
	struct incstack_pcct *pcct;

	random_state = seed;
	node_count = 0;
	unconnected = 0;
	memset(buckets, 0, sizeof(buckets));
	memset(frames, 0, sizeof(frames));
	top = DEEPEST;
	enter();
	ck_assert_int_eq(incstack_runtime_create(&options, &runtime), 0);
	ck_assert_int_eq(incstack_stack_create_embedder(runtime, &walker, &runtime, &stack), 0);
	ck_assert_int_eq(incstack_pcct_create(&size, &pcct), 0);
	for (int i = 0; i < samples; i++) {
		go_on(i);
		sample(1 + draw(5), limit);
		if ((i + 1) % per_retrieve == 0)
			retrieve(pcct);
	}
	retrieve(pcct);
	compare(pcct);
	incstack_pcct_destroy(pcct);
	incstack_stack_destroy(stack);
	incstack_runtime_destroy(runtime);
}

START_TEST(equal_to_figure_7)
{
	static const int limits[] = {0, 1, 2, 3, 5, 8, 16, 30}, per[] = {1, 2, 7, 50, 100000};
	for (int l = 0; l < 8; l++)
		for (int p = 0; p < 5; p++)
			for (uint64_t seed = 1; seed <= 4; seed++)
				check(seed * 977 + (uint64_t)l, limits[l], per[p], 1500);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("figure_7");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, equal_to_figure_7);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
