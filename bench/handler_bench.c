/* SPDX-License-Identifier: MIT
 *
 * Measures what a sample costs the thread that is interrupted, inside the signal handler, by the
 * depth of the stack: an incremental sample, a sample that walks the whole stack, walks by the frame
 * iterator, by libunwind and by glibc, and a walk by another thread while the thread waits in its handler. In one run all of them
 * take turns in random order.
 */
#define _GNU_SOURCE
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

#include <libunwind.h>

#include <incstack/frames.h>
#include <incstack/native.h>

#define OPAQUE __attribute__((noinline))

enum { DEPTHS = 4, CHANGED = 4, FRAMES = 2048, ROUNDS_MAX = 99, SIGNALS = 100, WARM = 8 };
enum { ROOM = FRAMES * sizeof(struct incstack_frame_object) };
static const int depths[DEPTHS] = {16, 64, 256, 1024};

/* What the handler does. OUTSIDE waits for the walk of another thread, whose own time is WALKER. */
enum technique { NOTHING, OURS, FULL, ITERATOR, UNW, GLIBC, OUTSIDE, WALKER, TECHNIQUES };
static const char *const names[TECHNIQUES] = {"nothing",       "incremental", "full",    "iterator",
					      "unw_backtrace", "glibc",       "outside", "walker"};

static struct incstack_runtime *runtime;
static struct incstack_stack *stack;
static int (*glibc_backtrace)(void **, int);
static void *pcs[FRAMES];
static int seen;     /* frames of the last walk */
static int failures; /* walks that were too short, samples that were refused */

/* ---- the other thread ------------------------------------------------------------------ */

static sem_t asked, answered;
static const void *interrupted; /* null: the thread shall end */
static uint64_t walker_ticks;

static uint64_t now(void)
{
	unsigned processor;
	_mm_lfence();
	const uint64_t ticks = __rdtscp(&processor);
	_mm_lfence();
	return ticks;
}

static int iterate(const void *context)
{
	struct incstack_frames frames;
	int count = 0;
	const struct incstack_frames_place place = {.stack = stack};
	const struct incstack_top top = incstack_native_top(context);
	if (incstack_frames_begin(&frames, &place, &top))
		return 0;
	while (count < FRAMES && incstack_frames_next(&frames) > 0)
		pcs[count++] = (void *)frames.frame.pc;
	return count;
}

static void *walk_from_outside(void *unused)
{
	(void)unused;
	for (;;) {
		while (sem_wait(&asked))
			continue;
		if (!interrupted)
			return NULL;
		const uint64_t begin = now();
		seen = iterate(interrupted);
		walker_ticks = now() - begin;
		sem_post(&answered);
	}
}

static void ask_walker(const void *context)
{
	interrupted = context;
	sem_post(&asked);
	while (sem_wait(&answered))
		continue;
}

/* ---- the handler ------------------------------------------------------------------------- */

static enum technique technique;
static uint64_t handler_ticks;

/* The walk alone, without the question whether the state is described. */
static int sample(const void *context)
{
	const greg_t *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;
	const struct incstack_top top = {.pc = (uintptr_t)registers[REG_RIP],
					 .sp = (uintptr_t)registers[REG_RSP],
					 .fp = (uintptr_t)registers[REG_RBP],
					 .flags = INCSTACK_TOP_INTERRUPTED};
	return incstack_stack_sample(stack, 0, 1, &top);
}

static void look(const void *context)
{
	switch (technique) {
	case OURS:
	case FULL:
		failures += sample(context) != 0;
		break;
	case ITERATOR:
		seen = iterate(context);
		break;
	case UNW:
		seen = unw_backtrace(pcs, FRAMES);
		break;
	case GLIBC:
		seen = glibc_backtrace(pcs, FRAMES);
		break;
	case OUTSIDE:
		ask_walker(context);
		break;
	default:
		break;
	}
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	const uint64_t begin = now();
	look(context);
	handler_ticks = now() - begin;
}

/* ---- the program --------------------------------------------------------------------------- */

static uint64_t times[TECHNIQUES][SIGNALS];

static OPAQUE void nest(int depth, void (*then)(void))
{
	if (depth > 0)
		nest(depth - 1, then);
	else
		then();
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

static OPAQUE void signal_once(void)
{
	raise(SIGUSR1);
}

static int compare_ticks(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* The mean of the middle half. The clock of some virtual machines goes in steps of 10 ns. */
static double middle(uint64_t *ticks)
{
	double sum = 0;
	qsort(ticks, SIGNALS, sizeof(*ticks), compare_ticks);
	for (int i = SIGNALS / 4; i < SIGNALS * 3 / 4; i++)
		sum += (double)ticks[i];
	return sum / (SIGNALS / 2);
}

static int wanted_depth; /* of the frames above nest() */

/* The youngest frames are new at each signal. Barriers exist only for the incremental samples, and
 * rules are known after the first signals. */
static void measure(enum technique t)
{
	struct incstack_tree *tree;
	technique = t;
	incstack_stack_set_mode(stack, t == OURS ? INCSTACK_MODE_PATCH : INCSTACK_MODE_FULL);
	for (int i = -WARM; i < SIGNALS; i++) {
		incstack_stack_reserve(stack, ROOM);
		seen = FRAMES;
		nest(CHANGED - 1, signal_once);
		failures += seen < wanted_depth;
		if (i >= 0)
			times[t][i] = handler_ticks;
		if (i >= 0 && t == OUTSIDE)
			times[WALKER][i] = walker_ticks;
	}
	failures += incstack_stack_retrieve(stack, &tree) || tree->truncated > WARM;
	incstack_tree_release(tree);
}

static void measure_all(void)
{
	int order[WALKER];
	for (int i = 0; i < WALKER; i++) {
		const int j = rand() % (i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	for (int i = 0; i < WALKER; i++)
		measure((enum technique)order[i]);
}

/* ---- the result ---------------------------------------------------------------------------- */

static double cells[DEPTHS][TECHNIQUES][ROUNDS_MAX]; /* ticks, without those of NOTHING */

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct spread {
	double median, low, high;
};

static struct spread spread_of(const double *values, int count)
{
	double sorted[ROUNDS_MAX];
	memcpy(sorted, values, (size_t)count * sizeof(*values));
	qsort(sorted, (size_t)count, sizeof(*sorted), compare_doubles);
	return (struct spread){sorted[count / 2], sorted[0], sorted[count - 1]};
}

/* Quotients of the same round. */
static struct spread ratio_of(const double *a, const double *b, int count)
{
	double quotients[ROUNDS_MAX];
	for (int i = 0; i < count; i++)
		quotients[i] = a[i] / b[i];
	return spread_of(quotients, count);
}

static double ticks_per_ns(void)
{
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	const uint64_t begin = now();
	usleep(50000);
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (double)(now() - begin) /
	       ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec));
}

static void print_cells(int rounds, int csv)
{
	const double ticks = ticks_per_ns();
	printf(csv ? "depth,technique,ns,ratio,ratio_low,ratio_high\n"
		   : "in the handler: ns, and the ratio to an incremental sample\n");
	for (int d = 0; d < DEPTHS; d++)
		for (int t = OURS; t < TECHNIQUES; t++) {
			const struct spread r = ratio_of(cells[d][t], cells[d][OURS], rounds);
			const double ns = spread_of(cells[d][t], rounds).median / ticks;
			printf(csv ? "%d,%s,%.0f,%.3g,%.3g,%.3g\n"
				   : "%5d %-14s %9.0f %8.3g [%.3g..%.3g]\n",
			       depths[d], names[t], ns, r.median, r.low, r.high);
		}
}

/* Measures all, and prints the times only if that is wanted. */
static int run(int rounds, int csv, int print)
{
	for (int round = 0; round < rounds; round++)
		for (int d = 0; d < DEPTHS; d++) {
			wanted_depth = depths[d];
			nest(depths[d] - CHANGED, measure_all);
			const double nothing = middle(times[NOTHING]);
			for (int t = OURS; t < TECHNIQUES; t++)
				cells[d][t][round] = middle(times[t]) - nothing;
		}
	if (failures)
		fprintf(stderr, "%d walks or samples failed\n", failures);
	if (failures || !print)
		return failures;
	print_cells(rounds, csv);
	const struct spread growth = ratio_of(cells[DEPTHS - 1][OURS], cells[0][OURS], rounds);
	fprintf(stderr,
		"an incremental sample at depth 1024 costs %.3g [%.3g..%.3g] times one at 16%s\n",
		growth.median, growth.low, growth.high, growth.median > 1.25 ? ": too much" : "");
	return growth.median > 1.25;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static int open_all(pthread_t *walker)
{
	const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	struct incstack_embedder embedder = *incstack_native_embedder();
	const struct incstack_options options = {.size = sizeof(options), .embedder = &embedder};
	embedder.signals.find_rule = embedder.code.find_rule_quickly;
	/* libunwind has a function of this name, too. */
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	*(void **)&glibc_backtrace = libc ? dlsym(libc, "backtrace") : NULL;
	return !glibc_backtrace || incstack_runtime_create(&options, &runtime) ||
	       incstack_stack_create_native(runtime, &stack) || sem_init(&asked, 0, 0) ||
	       sem_init(&answered, 0, 0) || sigaction(SIGUSR1, &action, NULL) ||
	       pthread_create(walker, NULL, walk_from_outside, NULL);
}

int main(int argc, char **argv)
{
	const int csv = argc > 1 && strcmp(argv[1], "--csv") == 0;
	const int check = argc > 1 && strcmp(argv[1], "--check") == 0;
	const int option = csv || check;
	const int rounds = argc > 1 + option ? atoi(argv[1 + option]) : check ? 1 : 9;
	pthread_t walker;
	if (rounds < 1 || rounds > ROUNDS_MAX || argc > 2 + option) {
		fprintf(stderr, "usage: handler_bench [--csv|--check] [ROUNDS]\n");
		return 2;
	}
	if (open_all(&walker)) {
		fprintf(stderr, "handler_bench: cannot begin\n");
		return 1;
	}
	const int result = run(rounds, csv, !check);
	interrupted = NULL;
	sem_post(&asked);
	return pthread_join(walker, NULL) || result;
}
