/* SPDX-License-Identifier: MIT
 *
 * toyvm_techniques: measures what the four techniques of the papers that need no signals cost on
 * the toy VM, compared with no sampling. 64 threads, each below 120 frames, compute the same. All
 * techniques take turns in random order. The first round warms up and does not count.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <incstack/sampler.h>

#include "statistics.h"
#include "vm.h"

#define ROUNDS_MAX 50
#define RETRIEVE_NS 50000000

enum technique { NONE, FULL_WALK, FULL_INCREMENTAL, PARTIAL_WALK, PARTIAL_INCREMENTAL, TECHNIQUES };
static const char *const names[] = {"none", "full safepoint, full walk",
				    "full safepoint, incremental", "partial, full walk",
				    "partial, incremental"};

static const char text[] =
	"def leaf(n) { var s = 0; var i = 0;\n"
	"  while (i < n) { s = s + i * i % 7; i = i + 1; } return s; }\n"
	"def churn(d, n) { if (d < 1) { return leaf(n); } return churn(d - 1, n) + leaf(3); }\n"
	"def deep(d, n) {\n"
	"  if (0 < d) { return deep(d - 1, n) + 1; }\n"
	"  var i = 0; var s = 0;\n"
	"  while (i < n) { s = s + churn(8, 40); i = i + 1; }\n"
	"  return s; }\n"
	"def worker(n) { print(deep(110, n)); return 0; }\n"
	"def main(n) { var i = 0;\n"
	"  while (i < 63) { spawn(&worker, n); i = i + 1; }\n"
	"  worker(n); return 0; }\n";

/* The current run and its results. */
static struct {
	enum technique technique;
	uint64_t interval;
	struct incstack_sampler *sampler;
	uint64_t wall, processor; /* ns */
	struct incstack_sampler_stats stats;
	_Atomic(uint64_t) depth;
} run;

static double seconds[TECHNIQUES][2][ROUNDS_MAX]; /* wall, processor */
static uint64_t wanted[TECHNIQUES], taken[TECHNIQUES];
static double obtained[TECHNIQUES][ROUNDS_MAX]; /* samples */
static bool real_time;

static uint64_t now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- operations ---------------------------------------------------------------------- */

static struct fiber *fiber_of(const struct incstack_ticket *ticket)
{
	struct fiber *f = ((struct thread *)ticket->thread->context)->fiber;
	return f && f->pc != stubs.base ? f : NULL;
}

static void sample(const struct incstack_ticket *ticket, void *argument)
{
	struct fiber *f = fiber_of(ticket), *own = fiber_looked_at;
	(void)argument;
	if (!f)
		return;
	struct incstack_top top = {
		.pc = f->pc, .sp = f->sp, .fp = f->fp, .flags = INCSTACK_TOP_EXACT};
	uint64_t depth = (uint64_t)(f->shadow - f->shadow_base);
	fiber_looked_at = f;
	incstack_stack_set_owner(f->stack);
	incstack_stack_reserve(f->stack, 512 + depth * 64);
	if (incstack_stack_sample(f->stack, ticket->time, 1, &top))
		COUNT(mismatches);
	COUNT(samples);
	atomic_fetch_add_explicit(&run.depth, depth, memory_order_relaxed);
	fiber_looked_at = own;
}

static void retrieve_one(const struct incstack_ticket *ticket, void *argument)
{
	struct fiber *f = fiber_of(ticket), *own = fiber_looked_at;
	struct incstack_tree *tree;
	(void)argument;
	if (!f)
		return;
	fiber_looked_at = f;
	incstack_stack_set_owner(f->stack);
	if (incstack_stack_retrieve(f->stack, &tree) == 0)
		incstack_tree_release(tree);
	fiber_looked_at = own;
}

/* Every thread retrieves its own traces, at its next poll. */
static void retrieve(struct incstack_sampler *sampler, void *vm)
{
	struct incstack_request *request;
	struct incstack_request_options options = {.size = sizeof(options),
						   .n = THREADS_MAX,
						   .flags = INCSTACK_REQUEST_WAITING,
						   .operation = retrieve_one};
	(void)sampler;
	if (incstack_request_start(((struct vm *)vm)->safepoint, &options, &request) == 0)
		incstack_request_release(request);
}

/* ---- one run --------------------------------------------------------------------------- */

static void begin(struct vm *vm)
{
	bool full = run.technique == FULL_WALK || run.technique == FULL_INCREMENTAL;
	struct incstack_sampler_options options = {
		.size = sizeof(options),
		.safepoint = vm->safepoint,
		.interval_ns = run.interval,
		.retrieve_ns = RETRIEVE_NS,
		.flags = INCSTACK_SAMPLER_REAL_TIME | (full ? INCSTACK_SAMPLER_FULL : 0u),
		.operation = sample,
		.retrieve = retrieve,
		.argument = vm,
	};
	if (run.technique != NONE && incstack_sampler_create(&options, &run.sampler))
		abort();
	run.wall = now(CLOCK_MONOTONIC);
	run.processor = now(CLOCK_PROCESS_CPUTIME_ID);
}

static void end(struct vm *vm)
{
	(void)vm;
	run.wall = now(CLOCK_MONOTONIC) - run.wall;
	run.processor = now(CLOCK_PROCESS_CPUTIME_ID) - run.processor;
	if (run.technique == NONE)
		return;
	run.stats.size = sizeof(run.stats);
	incstack_sampler_destroy(run.sampler, &run.stats);
	real_time = run.stats.real_time;
}

static uint64_t run_once(struct program *program, enum technique technique, int64_t n)
{
	static const struct sampling sampling = {begin, end, NULL};
	bool walks = technique == FULL_WALK || technique == PARTIAL_WALK;
	struct schedule schedule = {
		.mode = walks ? INCSTACK_MODE_FULL : INCSTACK_MODE_PATCH,
		.threads = THREADS_MAX,
		.compile_after = 2,
		.sampling = &sampling,
	};
	run.technique = technique;
	return vm_run(program, &schedule, 1, n, false);
}

static void round_of_all(struct program *program, int64_t n, int round)
{
	static uint64_t random = 1, sum;
	enum technique order[TECHNIQUES];
	for (enum technique t = 0; t < TECHNIQUES; t++)
		order[t] = t;
	for (uint32_t i = TECHNIQUES; i > 1; i--) {
		uint32_t j = (uint32_t)random_below(&random, i);
		enum technique swapped = order[i - 1];
		order[i - 1] = order[j];
		order[j] = swapped;
	}
	for (int i = 0; i < TECHNIQUES; i++) {
		enum technique t = order[i];
		uint64_t result = run_once(program, t, n);
		if (sum && result != sum)
			abort();
		sum = result;
		seconds[t][0][round] = (double)run.wall / 1e9;
		seconds[t][1][round] = (double)run.processor / 1e9;
		wanted[t] += t == NONE ? 0 : run.stats.wanted;
		taken[t] += t == NONE ? 0 : run.stats.taken;
		obtained[t][round] = t == NONE ? 0 : (double)run.stats.taken;
	}
}

/* ---- what came of it ----------------------------------------------------------------------- */

/* The four techniques are measured in the same rounds, so any two may be compared. There are six
 * comparisons, each with a sixth of the error (Bonferroni). */
#define PAIRS 6

/* How much longer one technique took than another, round by round, in percent of the time without
 * sampling. */
static struct interval difference(enum technique a, enum technique b, int clock, int rounds,
				  double confidence)
{
	double values[ROUNDS_MAX];
	for (int i = 0; i < rounds; i++)
		values[i] = 100 * (seconds[a][clock][i] - seconds[b][clock][i]) /
			    seconds[NONE][clock][i];
	return interval_of(values, rounds, confidence);
}

/* Processor time for each sample that was obtained, in microseconds: a technique that
 * loses samples does not look cheap for it. */
static struct interval price(enum technique t, int rounds)
{
	double values[ROUNDS_MAX];
	for (int i = 0; i < rounds; i++)
		values[i] = 1e6 * (seconds[t][1][i] - seconds[NONE][1][i]) /
			    (obtained[t][i] > 0 ? obtained[t][i] : NAN);
	return interval_of(values, rounds, 0.95);
}

static enum technique best_of(int clock, int rounds)
{
	enum technique best = FULL_WALK;
	for (enum technique t = FULL_WALK; t < TECHNIQUES; t++)
		if (difference(t, best, clock, rounds, 0.95).mean < 0)
			best = t;
	return best;
}

static const char *verdict(enum technique t, int clock, int rounds)
{
	enum technique best = best_of(clock, rounds);
	struct interval behind = difference(t, best, clock, rounds, 1 - 0.05 / PAIRS);
	return t == best ? "best" : behind.mean <= behind.half ? "tie" : "";
}

static void report(int rounds)
{
	for (enum technique t = FULL_WALK; t < TECHNIQUES; t++) {
		struct interval wall = difference(t, NONE, 0, rounds, 0.95);
		struct interval processor = difference(t, NONE, 1, rounds, 0.95);
		struct interval each = price(t, rounds);
		printf("%8.1f  %-27s  %7.1f +- %5.1f %-4s  %7.1f +- %5.1f %-4s  %7.1f +- %6.1f  "
		       "%.3f of %llu\n",
		       (double)run.interval / 1e6, names[t], wall.mean, wall.half,
		       verdict(t, 0, rounds), processor.mean, processor.half, verdict(t, 1, rounds),
		       each.mean, each.half, (double)taken[t] / (double)(wanted[t] + !wanted[t]),
		       (unsigned long long)wanted[t]);
	}
}

int main(int argc, char **argv)
{
	static const uint64_t intervals[] = {10000000, 1000000, 100000};
	struct parse_error error;
	struct program *program = program_parse(text, strlen(text), &error);
	int rounds = argc > 1 ? atoi(argv[1]) : 5;
	int64_t n = argc > 2 ? atoll(argv[2]) : 8000;
	if (!program || rounds < 1 || rounds > ROUNDS_MAX || n < 1) {
		fprintf(stderr, "usage: toyvm_techniques [ROUNDS [WORK]]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("interval  technique                    overhead in % of wall, of processor time"
	     "      us per sample      obtained of expected");
	for (int i = 0; i < 3; i++) {
		run.interval = intervals[i];
		round_of_all(program, n, 0); /* warms up; its times are overwritten */
		memset(wanted, 0, sizeof(wanted));
		memset(taken, 0, sizeof(taken));
		for (int round = 0; round < rounds; round++)
			round_of_all(program, n, round);
		report(rounds);
	}
	printf("a run without sampling: %.2f s; frames of a sample: %.0f; refused samples: %llu; "
	       "real-time sampler: %s\n",
	       seconds[NONE][0][0],
	       (double)run.depth / (double)(counters.samples + !counters.samples),
	       (unsigned long long)counters.mismatches, real_time ? "yes" : "no");
	program_free(program);
	return counters.mismatches != 0;
}
