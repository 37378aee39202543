/* SPDX-License-Identifier: MIT
 *
 * The test of the portable part where no test framework is: on other architectures, under an emulator.
 * Random programs in every mode, with every way to report errors, at every distance; embedders that lie;
 * deep stacks; failing allocations.
 *
 *     selftest [STEPS [SEED]]
 */
#include "toy.h"

static struct incstack_heap_stats all;
static uint64_t traces, compared, missing, errors, lied;

static void run(const struct toy_options *options, uint64_t steps)
{
	toy_open(options);
	toy_run(steps);
	const struct incstack_heap_stats stats = toy_stats();
	all.returns += stats.returns;
	all.stale += stats.stale;
	all.truncated += stats.truncated;
	all.copies += stats.copies;
	all.lost += stats.lost;
	traces += toy.traces;
	compared += toy.compared;
	missing += toy.missing;
	errors += toy.errors;
	lied += toy.lied;
	/* What is missing is counted. Nothing is missing without a reason. */
	REQUIRE(!toy.missing || stats.truncated);
	REQUIRE(options->mode == INCSTACK_HEAP_BARRIER || !stats.truncated || toy.lied);
	if (options->reports != REPORT_NOTHING && !toy.errors && !toy.lied)
		REQUIRE((!toy.missing || toy.forgotten) && !stats.stale && !stats.lost);
	toy_close();
}

static void run_honest(uint32_t mode, uint64_t steps, uint64_t seed)
{
	for (enum reports reports = REPORT_EACH; reports <= REPORT_NOTHING; reports++)
		for (uint32_t d = 0; d <= INCSTACK_HEAP_DISTANCE_MAX; d += d < 8 ? 1 : 14)
			run(&(struct toy_options){.mode = mode,
						  .distance = d,
						  .reports = reports,
						  .depth_max = d == 5 ? 2000 : 100,
						  .still = d & 1,
						  .seed = seed + d},
			    steps);
}

/* What trusts earlier reports is not used by an embedder that lies about marks. */
static void run_lying(uint32_t mode, uint64_t steps, uint64_t seed)
{
	for (unsigned i = 4; i < 16 * 4; i++) {
		const unsigned lies = i / 4;
		const enum reports reports = (enum reports)(i % 4);
		if (lies & LIE_UNMARKED && (reports == REPORT_MARKED || reports == REPORT_ONCE))
			continue;
		run(&(struct toy_options){.mode = mode,
					  .distance = lies % 3,
					  .reports = reports,
					  .lies = lies,
					  .lying = lies & LIE_UNKNOWN ? 200 : 5,
					  .still = true,
					  .seed = seed + lies},
		    steps);
	}
}

static void run_failing(uint32_t mode, uint64_t steps, uint64_t seed)
{
	for (long after = 1; after < 80; after++)
		run(&(struct toy_options){.mode = mode,
					  .distance = (uint32_t)after % 3,
					  .reports = (enum reports)(after % 4),
					  .fail_after = after,
					  .seed = seed + (uint64_t)after},
		    steps);
}

/* No trace is cut, however deep the stack is. */
static void run_deep(uint32_t mode, uint32_t distance)
{
	enum { DEEP = 100000 };
	toy_open(&(struct toy_options){.mode = mode, .distance = distance});
	while (toy.now->depth < DEEP)
		toy_call();
	for (int i = 0; i < 3; i++) {
		toy_sample();
		toy_trace();
		toy_return();
	}
	while (toy.now->depth > DEEP / 2)
		toy_return();
	REQUIRE(toy_retrieve() == 0);
	toy_raise(DEEP / 4);
	toy_sample();
	REQUIRE(toy_retrieve() == 0 && toy.missing == 0 && toy_stats().truncated == 0);
	traces += toy.traces;
	compared += toy.compared;
	toy_close();
}

/* The memory of deep stacks is used again. */
static void run_deep_again(uint32_t mode, bool at_once)
{
	enum { DEEP = 100000 };
	const struct incstack_heap_object *o;
	const struct incstack_heap_tree *tree;
	size_t most = 0;
	toy_open(&(struct toy_options){.mode = mode, .depth_max = DEEP});
	while (toy.now->depth < DEEP)
		toy_call();
	for (int i = 0; i < 30; i++) {
		struct incstack_heap_stack *s = toy.now->stack;
		const uintptr_t top = (uintptr_t)toy.now->top;
		if (at_once) {
			REQUIRE(incstack_heap_stack_trace(s, top, &o) == 0);
		} else {
			REQUIRE(incstack_heap_stack_sample(s, top, 0, 1) == 0);
			REQUIRE(incstack_heap_stack_retrieve(s, top, &tree) == 0);
			incstack_heap_tree_release(tree, NULL);
		}
		if (i < 10 && most < toy.allocated)
			most = toy.allocated;
		REQUIRE(toy.allocated <= most);
	}
	toy_close();
}

int main(int argc, char **argv)
{
	const uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 5000;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	for (uint32_t mode = INCSTACK_HEAP_BARRIER; mode <= INCSTACK_HEAP_FULL; mode++) {
		run_honest(mode, steps, seed);
		run_lying(mode, steps / 4, seed);
		run_failing(mode, steps / 4, seed);
		run_deep(mode, 0);
		run_deep(mode, 1);
		run_deep_again(mode, false);
		run_deep_again(mode, true);
	}
	printf("%u bits: %llu traces, %llu frames compared, 0 mismatches, %llu returns reported, "
	       "%llu stale, %llu truncated, %llu frames not seen, %llu lost, %llu copies, %llu "
	       "lies\n",
	       (unsigned)(sizeof(void *) * 8), (unsigned long long)traces,
	       (unsigned long long)compared, (unsigned long long)all.returns,
	       (unsigned long long)all.stale, (unsigned long long)all.truncated,
	       (unsigned long long)missing, (unsigned long long)all.lost,
	       (unsigned long long)all.copies, (unsigned long long)lied);
	return errors == 0 || all.stale == 0 || lied == 0; /* each was tried */
}
