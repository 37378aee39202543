/* SPDX-License-Identifier: MIT
 *
 * Measures what folding shared frame objects saves. The traces of a real stack go into a calling
 * context tree once as retrieved trees and once trace by trace. Both sides are timed in turns, per
 * retrieve, with the same tree and hash. Frames are numbers, so no text is compared. How much is
 * saved depends on how much samples share. So without arguments a table is printed, by changed
 * frames (of 200) and samples per retrieve.
 *
 * usage: cct_bench [SAMPLES [DEPTH CHANGED SAMPLES_PER_RETRIEVE]]
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <incstack/native.h>
#include <incstack/profile.h>

#include "statistics.h"

#define REPEATS 5

struct side {
	struct incstack_profile *profile;
	double seconds;
};

struct bench {
	uint64_t samples, batch, depth, changed;
	uint64_t taken, random, tree_depth;
	struct incstack_stack *stack;
	struct side shared, full;
};

static void check(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "cct_bench: %s: error %d\n", what, error);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t depth_of(const struct incstack_trace *trace)
{
	uint64_t depth = 0;

	for (const struct incstack_frame_object *o = trace->top; o; o = o->parent)
		depth++;
	return depth;
}

static void fold_shared(struct side *side, const struct incstack_tree *tree)
{
	double start = now();

	check(incstack_profile_add_tree(side->profile, INCSTACK_PROFILE_ROOT, tree, NULL, NULL),
	      "add_tree");
	side->seconds += now() - start;
}

static void fold_full(struct side *side, const struct incstack_tree *tree)
{
	double start = now();

	for (const struct incstack_trace *t = tree->traces; t; t = t->next) {
		const struct incstack_trace alone = {.weight = t->weight, .top = t->top};
		const struct incstack_tree one = {.traces = &alone, .count = 1};

		check(incstack_profile_add_tree(side->profile, INCSTACK_PROFILE_ROOT, &one, NULL,
						NULL),
		      "add_tree");
	}
	side->seconds += now() - start;
}

/* Reserves room for one batch: traces, their objects, and the frames that no sample changes. */
static void reserve(const struct bench *bench)
{
	check(incstack_stack_reserve(bench->stack, 64 * (bench->batch * (bench->changed + 3) +
							 bench->depth + 4096)),
	      "reserve");
}

static void retrieve(struct bench *bench)
{
	struct incstack_tree *tree;

	check(incstack_stack_retrieve(bench->stack, &tree), "retrieve");
	if (tree->truncated)
		check(-1, "truncated traces");
	bench->tree_depth = depth_of(tree->traces);
	if (bench->taken / bench->batch %
	    2) { /* in turns, so that both sides find a warm cache equally often */
		fold_shared(&bench->shared, tree);
		fold_full(&bench->full, tree);
	} else {
		fold_full(&bench->full, tree);
		fold_shared(&bench->shared, tree);
	}
	incstack_tree_release(tree);
	reserve(bench);
}

static void sample(struct bench *bench)
{
	const struct incstack_top top = incstack_native_top(NULL);
	check(incstack_stack_sample(bench->stack, bench->taken, 1, &top), "sample");
	if (++bench->taken % bench->batch == 0)
		retrieve(bench);
}

typedef int step_fn(struct bench *bench, uint64_t levels);

static int leaf_0(struct bench *bench, uint64_t levels);
static int leaf_1(struct bench *bench, uint64_t levels);
static int leaf_2(struct bench *bench, uint64_t levels);

/* Chooses anew at every level which of three functions is called next. */
static int next_leaf(struct bench *bench, uint64_t levels)
{
	static step_fn *const leaves[] = {leaf_0, leaf_1, leaf_2};

	bench->random = bench->random * 6364136223846793005u + 1442695040888963407u;
	return leaves[(bench->random >> 33) % 3](bench, levels);
}

/* Adding to what the callee returns keeps the call from becoming a jump. */
#define LEAF(name, number) \
	__attribute__((noinline)) static int name(struct bench *bench, uint64_t levels) \
	{ \
		if (levels > 1) \
			return next_leaf(bench, levels - 1) + number; \
		sample(bench); \
		return number; \
	}
LEAF(leaf_0, 1)
LEAF(leaf_1, 2)
LEAF(leaf_2, 3)

__attribute__((noinline)) static int trunk(struct bench *bench, uint64_t levels)
{
	int sum = 0;

	if (levels > 1) {
		sum = trunk(bench, levels - 1);
		__asm__ volatile("" : "+r"(sum)); /* otherwise the recursion becomes a loop */
		return sum;
	}
	while (bench->taken < bench->samples)
		sum += next_leaf(bench, bench->changed);
	return sum;
}

static struct side new_side(void)
{
	static const struct incstack_profile_kind kind = {"samples", "count"};
	struct side side = {.profile = NULL};

	check(incstack_profile_create(&kind, 1, &side.profile), "profile");
	return side;
}

/* Measures one point, with empty trees at first. Both trees must become equal. */
static void measure(struct bench *bench)
{
	struct incstack_frame frames[64]; /* of main and its callers */
	uint64_t around = bench->changed + (uint64_t)incstack_native_walk(frames, 64);

	bench->shared = new_side();
	bench->full = new_side();
	bench->taken = 0;
	reserve(bench);
	trunk(bench, bench->depth > around ? bench->depth - around : 1);
	if (incstack_profile_nodes(bench->shared.profile) !=
	    incstack_profile_nodes(bench->full.profile))
		check(-1, "the trees differ");
	incstack_profile_destroy(bench->shared.profile);
	incstack_profile_destroy(bench->full.profile);
}

static double point(struct bench *bench)
{
	double shared[REPEATS], full[REPEATS], ratio[REPEATS];

	bench->samples -= bench->samples % bench->batch;
	measure(bench); /* warms up */
	for (int i = 0; i < REPEATS; i++) {
		measure(bench);
		shared[i] = bench->shared.seconds * 1e9 / (double)bench->taken;
		full[i] = bench->full.seconds * 1e9 / (double)bench->taken;
		ratio[i] = full[i] / shared[i];
	}
	struct interval s = interval_of(shared, REPEATS, 0.95);
	struct interval f = interval_of(full, REPEATS, 0.95);
	struct interval r = interval_of(ratio, REPEATS, 0.95);
	printf("%5" PRIu64 " %7" PRIu64 " %12" PRIu64 "  %9.1f +- %7.1f  %9.1f +- %7.1f  %5.2f +- "
	       "%.2f\n",
	       bench->tree_depth, bench->changed, bench->batch, s.mean, s.half, f.mean, f.half,
	       r.mean, r.half);
	return r.mean;
}

static void plane(struct bench *bench, uint64_t samples)
{
	static const uint64_t changed[] = {1, 5, 20, 50, 100, 190}, batches[] = {1, 10, 100, 1000};
	double worst = INFINITY, best = 0;

	for (int c = 0; c < 6; c++)
		for (int b = 0; b < 4; b++) {
			bench->samples = samples < batches[b] ? batches[b] : samples;
			bench->changed = changed[c];
			bench->batch = batches[b];
			double ratio = point(bench);
			worst = fmin(worst, ratio);
			best = fmax(best, ratio);
		}
	printf("full traces take %.2f times as long at worst, %.2f at best\n", worst, best);
}

static uint64_t argument(char **argv, int argc, int i, uint64_t usual)
{
	uint64_t value = i < argc ? strtoull(argv[i], NULL, 10) : usual;

	if (!value)
		check(INCSTACK_EINVAL, "arguments are numbers above 0");
	return value;
}

int main(int argc, char **argv)
{
	bool one = argc > 2;
	struct bench bench = {.samples = argument(argv, argc, 1, one ? 1000000 : 20000),
			      .depth = argument(argv, argc, 2, 200),
			      .changed = argument(argv, argc, 3, 5),
			      .batch = argument(argv, argc, 4, 1000)};
	struct incstack_runtime *runtime;

	check(incstack_runtime_create_native(NULL, &runtime), "runtime");
	check(incstack_stack_create_native(runtime, &bench.stack), "stack");
	puts("depth changed per retrieve  shared objects, ns per sample    every full trace       "
	     "  times");
	if (one)
		(void)point(&bench);
	else
		plane(&bench, bench.samples);
	incstack_stack_destroy(bench.stack);
	incstack_runtime_destroy(runtime);
	return 0;
}
