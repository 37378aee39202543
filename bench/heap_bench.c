/* SPDX-License-Identifier: MIT
 *
 * What a trace of frames on the heap costs, compared with the loop that an interpreter would write: it
 * goes from frame to frame and stores functions and positions. Between two traces some frames change: the
 * youngest return, their caller runs on, and as many are called again. The ways take turns, in short runs,
 * and what the interpreter itself needs is subtracted. In a program, one trace is over long before the
 * next one begins. Here a fence stands between them, or the processor would work on several at once.
 *
 * With --vary, the depth changes at random, between 7 and 300 frames; see struct program.
 *
 * usage: heap_bench [DEPTH | --check | --way WAY DEPTH CHANGED TRACES | --vary [DISTANCE] | --idle STACKS]
 *   WAY: none; loop; trace (incstack_heap_stack_trace); sample (with its retrieve and release); thread
 *   (the same, but the tree is released without its stack); fulltrace, full and validate: the other modes
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heap_bench/interpreter.h"

enum { ROUNDS = 31, WAYS = 8 };

/* ---- the ways to make a trace ----------------------------------------------------------------- */

static void trace_none(void)
{
}

__attribute__((noinline)) static void trace_by_loop(void)
{
	size_t n = 0;
	for (const struct frame *f = top; f; f = f->caller, n++) {
		stored[n].function = (uintptr_t)f->closure->function;
		stored[n].position = position_of(f);
	}
	__asm__ volatile("" ::"r"(n) : "memory");
}

static void trace_at_once(void)
{
	const struct incstack_heap_object *o;
	check(!incstack_heap_stack_trace(stack, (uintptr_t)top, &o), "trace");
	__asm__ volatile("" ::"r"(o) : "memory");
}

static inline const struct incstack_heap_tree *retrieve_one(void)
{
	const struct incstack_heap_tree *tree;
	check(!incstack_heap_stack_sample(stack, (uintptr_t)top, 0, 1), "sample");
	check(!incstack_heap_stack_retrieve(stack, (uintptr_t)top, &tree), "retrieve");
	return tree;
}

static void sample_and_retrieve(void)
{
	check(!incstack_heap_tree_release(retrieve_one(), stack), "release");
}

static void sample_for_another_thread(void)
{
	incstack_heap_tree_release(retrieve_one(), NULL);
}

static const struct way {
	const char *name;
	void (*trace)(void);
	uint32_t mode;
} ways[WAYS] = {{"none", trace_none, 0},
		{"loop", trace_by_loop, 0},
		{"trace", trace_at_once, INCSTACK_HEAP_BARRIER},
		{"sample", sample_and_retrieve, INCSTACK_HEAP_BARRIER},
		{"thread", sample_for_another_thread, INCSTACK_HEAP_BARRIER},
		{"fulltrace", trace_at_once, INCSTACK_HEAP_FULL},
		{"full", sample_and_retrieve, INCSTACK_HEAP_FULL},
		{"validate", trace_at_once, INCSTACK_HEAP_VALIDATE}};

static uint32_t distance; /* 0: adaptive */

static void open_way(const struct way *way, uint32_t depth)
{
	const struct incstack_heap_options options = {.size = sizeof(options),
						      .walk = walk,
						      .mark = mark,
						      .memory = memory,
						      .mode = way->mode,
						      .distance = distance};
	for (int i = 0; i < FUNCTIONS; i++) {
		functions[i].code = code;
		closures[i].function = &functions[i];
	}
	check(!incstack_heap_create(&options, &heap), "create");
	check(!incstack_heap_stack_create(heap, NULL, &stack), "stack");
	top = NULL;
	for (uint32_t i = 0; i < depth; i++)
		call();
}

static void close_way(void)
{
	incstack_heap_destroy(heap);
}

static inline void fence(void)
{
#if defined(__x86_64__)
	__asm__ volatile("lfence" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static void run(const struct way *way, uint32_t changed, uint64_t traces)
{
	for (uint64_t i = 0; i < traces; i++) {
		change(changed);
		fence();
		way->trace();
		fence();
	}
}

/* ---- times ---------------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Returns nanoseconds for each trace. */
static double time_way(const struct way *way, uint32_t depth, uint32_t changed, uint64_t traces)
{
	open_way(way, depth);
	run(way, changed, 200);
	const double start = now();
	run(way, changed, traces);
	const double time = (now() - start) / (double)traces;
	close_way();
	return time;
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare_doubles);
	return values[ROUNDS / 2];
}

/* The ways that go over all frames make fewer traces, so that each run takes about as long. */
static uint64_t traces_of(const struct way *way, uint32_t depth)
{
	const bool all = way->trace == trace_by_loop || way->mode != INCSTACK_HEAP_BARRIER;
	return all ? 200000 / depth + 200 : 20000;
}

static void print_row(uint32_t depth, uint32_t changed)
{
	double times[WAYS][ROUNDS], ratios[WAYS][ROUNDS];
	for (int r = 0; r < ROUNDS; r++) {
		for (int w = 0; w < WAYS; w++)
			times[w][r] =
				time_way(&ways[w], depth, changed, traces_of(&ways[w], depth));
		for (int w = 1; w < WAYS; w++) {
			times[w][r] -= times[0][r];
			ratios[w][r] = times[w][r] / times[1][r];
		}
	}
	printf("%6u %8u", depth, changed);
	for (int w = 1; w < WAYS; w++)
		printf(" %9.1f", median(times[w]));
	for (int w = 2; w < WAYS; w++)
		printf(" %9.4f", median(ratios[w]));
	printf("\n");
	fflush(stdout);
}

static void print_table(uint32_t only)
{
	static const uint32_t depths[] = {7, 18, 60, 300, 3000};
	printf("%6s %8s %67s  %s\n", "frames", "changed", "ns for a trace",
	       "compared with the loop");
	printf("%15s", "");
	for (int w = 1; w < WAYS; w++)
		printf(" %9s", ways[w].name);
	for (int w = 2; w < WAYS; w++)
		printf(" %9s", ways[w].name);
	printf("\n");
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++)
		for (uint32_t changed = 1; changed <= 3 && (!only || only == depths[i]); changed++)
			print_row(depths[i], changed);
}

/* ---- programs whose depth varies ---------------------------------------------------------------- */

enum { LEAST = 7, MOST = 300, VARIED_TRACES = 20000 };
static uint64_t random_state;

/* A number below n (Marsaglia 2003, "Xorshift RNGs"). */
static uint32_t random_below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 20) % n);
}

static uint32_t depth_now(void)
{
	return (uint32_t)(top - frames) + 1;
}

/* The functions return or call until the depth is this one. */
static void go_to(uint32_t depth)
{
	depth = depth < LEAST ? LEAST : depth > MOST ? MOST : depth;
	while (depth_now() > depth)
		give_back();
	run_on();
	while (depth_now() < depth)
		call();
}

/* Between two traces the depth goes `times` times up or down, by at most `most` frames each. Every `rare`-th
 * time it goes to any depth instead, if `rare` is not 0. */
static const struct program {
	const char *name;
	uint32_t times, most, rare;
} programs[] = {{"any depth", 1, 0, 1},        {"steps to 4", 1, 4, 0},
		{"steps to 16", 1, 16, 0},     {"steps to 64", 1, 64, 0},
		{"4 steps to 8", 4, 8, 0},     {"32 steps to 4", 32, 4, 0},
		{"rare, to 2", 1, 2, 10},      {"rare, to 8", 1, 8, 10},
		{"very rare, to 2", 1, 2, 50}, {"very rare, to 8", 1, 8, 50}};
enum { PROGRAMS = sizeof(programs) / sizeof(programs[0]) };

static void vary(const struct program *p)
{
	for (uint32_t i = 0; i < p->times; i++)
		if (p->rare && random_below(p->rare) == 0)
			go_to(LEAST + random_below(MOST - LEAST + 1));
		else
			go_to(depth_now() + random_below(2 * p->most + 1) - p->most);
}

/* Returns nanoseconds for each trace. */
static double time_program(const struct way *way, const struct program *p,
			   struct incstack_heap_stats *stats)
{
	random_state = 88172645463325252;
	open_way(way, (LEAST + MOST) / 2);
	const double start = now();
	for (uint32_t i = 0; i < VARIED_TRACES; i++) {
		vary(p);
		fence();
		way->trace();
		fence();
	}
	const double time = (now() - start) / VARIED_TRACES;
	*stats = (struct incstack_heap_stats){.size = sizeof(*stats)};
	check(!incstack_heap_stack_stats(stack, stats), "stats");
	close_way();
	return time;
}

static void print_programs(void)
{
	printf("%-16s %9s %9s %9s %9s\n", "program", "ns", "walked", "returns", "distance");
	for (const struct program *p = programs; p < programs + PROGRAMS; p++) {
		struct incstack_heap_stats stats;
		double times[ROUNDS];
		for (int r = 0; r < ROUNDS; r++) {
			times[r] = -time_program(&ways[0], p, &stats);
			times[r] += time_program(&ways[3], p, &stats);
		}
		printf("%-16s %9.1f %9.2f %9.3f %9u\n", p->name, median(times),
		       (double)stats.walked / VARIED_TRACES, (double)stats.returns / VARIED_TRACES,
		       (unsigned)stats.distance);
	}
}

/* ---- checks, and the memory of idle stacks ----------------------------------------------------- */

static void check_trace(const struct incstack_heap_object *o, uint32_t depth)
{
	trace_by_loop();
	for (uint32_t n = 0; n < depth; n++, o = o->parent)
		check(o && o->frame.position == stored[n].position &&
			      o->frame.function == stored[n].function,
		      "a wrong trace");
	check(!o, "too many frames");
}

static void check_way(const struct way *way, uint32_t depth, uint32_t changed)
{
	open_way(way, depth);
	for (int i = 0; i < 300; i++) {
		const struct incstack_heap_object *o;
		change(changed);
		if (i % 3 == 0) {
			check(!incstack_heap_stack_trace(stack, (uintptr_t)top, &o), "trace");
			check_trace(o, depth);
			continue;
		}
		const struct incstack_heap_tree *tree = retrieve_one();
		check_trace(tree->traces->top, depth);
		if (i % 3 == 1)
			incstack_heap_tree_release(tree, NULL);
		else
			check(!incstack_heap_tree_release(tree, stack), "release");
	}
	close_way();
}

static void check_all(void)
{
	for (uint32_t depth = 3; depth <= 300; depth += 33)
		for (uint32_t changed = 1; changed <= 3; changed++)
			for (int w = 2; w < WAYS; w++)
				check_way(&ways[w], depth, changed);
	puts("all traces are right");
}

static void print_idle(uint64_t stacks)
{
	open_way(&ways[2], 1);
	const size_t before = allocated;
	struct incstack_heap_stack *idle;
	for (uint64_t i = 0; i < stacks; i++)
		check(!incstack_heap_stack_create(heap, NULL, &idle), "stack");
	printf("%" PRIu64 " idle stacks: %.1f bytes each\n", stacks,
	       (double)(allocated - before) / (double)stacks);
	close_way();
}

static int run_way(char **arguments)
{
	for (int w = 0; w < WAYS; w++) {
		if (strcmp(arguments[0], ways[w].name) != 0)
			continue;
		open_way(&ways[w], (uint32_t)atoi(arguments[1]));
		run(&ways[w], (uint32_t)atoi(arguments[2]), strtoull(arguments[3], NULL, 10));
		close_way();
		return 0;
	}
	return 2;
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "--way"))
		return run_way(argv + 2);
	if (argc >= 2 && argc <= 3 && !strcmp(argv[1], "--vary")) {
		distance = argc == 3 ? (uint32_t)atoi(argv[2]) : 0;
		print_programs();
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "--idle"))
		print_idle(strtoull(argv[2], NULL, 10));
	else if (argc == 2 && !strcmp(argv[1], "--check"))
		check_all();
	else
		print_table(argc == 2 ? (uint32_t)atoi(argv[1]) : 0);
	return 0;
}
