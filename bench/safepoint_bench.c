/* SPDX-License-Identifier: MIT
 *
 * Measures what a request for two samples costs, by a full safepoint and by a partial one: the
 * time to the first and to the last sample, and how long mutators stall. For comparison it also
 * measures the parking of the papers, and a bare stop, the least that stopping threads can cost.
 * docs/performance.md says how it is measured.
 *
 * safepoint_bench [--csv] [--trials N]
 */
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "safepoint/step.h"
#include "statistics.h"

#define THREADS_MAX 512
#define SAMPLES 2  /* of a request */
#define FRAMES 100 /* that a sample reads */
#define STALLS_MAX (1 << 18)
#define TIME_NS UINT64_C(20000000000) /* of a configuration, at most */
#define GAP_NS 500000                 /* between trials, at least; at most three times this */

enum variant { FULL, PARTIAL, PARKING, BARE, VARIANTS };
enum measure { FIRST, LAST, STOPPED, MEASURES };

struct frame {
	struct frame *caller;
	uint64_t pc[7];
};

/* The poll word of the bare stop. */
struct bare {
	_Alignas(64) _Atomic(uint32_t) word;
	bool counts; /* its thread runs */
};

struct mutator {
	pthread_t tid;
	bool runs;
	struct bare *bare;
	_Alignas(64) struct frame frames[FRAMES];
};

/* The trial in progress. Threads sleep on the words that are marked "slept on". */
static struct {
	_Atomic(uint64_t) first, last; /* starts and ends of samples */
	_Atomic(uint32_t) done;        /* samples taken; slept on */
	_Atomic(uint32_t) left;        /* of the parking: samples to come; slept on */
	_Atomic(uint32_t) bare_left;   /* of the bare stop: threads to come; slept on */
	_Atomic(uint32_t) bare_epoch;  /* counts releases; slept on */
	_Atomic(uint32_t) variant;
} trial;

/* The measurements of one configuration. */
static struct {
	uint32_t count; /* trials of each variant */
	uint32_t *times[VARIANTS][MEASURES], *requester;
	uint32_t *stalls[VARIANTS];
	_Atomic(uint32_t) stall_count[VARIANTS];
} seen;

static struct mutator mutators[THREADS_MAX];
static struct bare bare[THREADS_MAX];
static struct incstack_safepoint *safepoint;
static _Atomic(uint32_t) attached, go, over; /* slept on: go by all, over by waiting threads */
static uint64_t seed = 1;
static uint32_t trials = 200;
static bool csv;

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void futex(_Atomic(uint32_t) *word, int operation, uint32_t value)
{
	syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % limit);
}

/* ---- samples ----------------------------------------------------------------------- */

static void sample(struct mutator *mutator)
{
	uint64_t start = now(), sum = 0, before = atomic_load(&trial.first);
	while (start < before && !atomic_compare_exchange_weak(&trial.first, &before, start))
		;
	for (struct frame *frame = mutator->frames; frame; frame = frame->caller)
		sum += frame->pc[0];
	__asm__ volatile("" : : "r"(sum));
	uint64_t end = now();
	atomic_fetch_add(&trial.done, 1);
	before = atomic_load(&trial.last);
	while (end > before && !atomic_compare_exchange_weak(&trial.last, &before, end))
		;
}

static void operation(const struct incstack_ticket *ticket, void *argument)
{
	(void)argument;
	sample(ticket->thread->context);
}

/* The operation of the papers: a thread that has sampled itself waits until all have. */
static void parking_operation(const struct incstack_ticket *ticket, void *argument)
{
	(void)argument;
	sample(ticket->thread->context);
	uint32_t left = atomic_fetch_sub(&trial.left, 1) - 1;
	if (left == 0)
		futex(&trial.left, FUTEX_WAKE, INT_MAX);
	for (; left != 0; left = atomic_load(&trial.left))
		futex(&trial.left, FUTEX_WAIT, left);
}

/* ---- mutators ------------------------------------------------------------------------ */

static void bare_stop_here(struct mutator *me)
{
	uint32_t epoch = atomic_load(&trial.bare_epoch);
	atomic_store(&me->bare->word, 0);
	if (atomic_fetch_sub(&trial.bare_left, 1) == 1)
		futex(&trial.bare_left, FUTEX_WAKE, INT_MAX);
	while (atomic_load(&trial.bare_epoch) == epoch)
		futex(&trial.bare_epoch, FUTEX_WAIT, epoch);
}

static void stall(struct mutator *me, struct incstack_thread *self, bool is_bare)
{
	uint32_t variant = atomic_load(&trial.variant);
	uint64_t start = now();
	if (is_bare)
		bare_stop_here(me);
	else
		incstack__thread_poll_slow(self);
	uint64_t stalled = now() - start;
	futex(&trial.done, FUTEX_WAKE, INT_MAX); /* one stall may overlap two trials */
	uint32_t i = atomic_fetch_add(&seen.stall_count[variant], 1);
	if (i < STALLS_MAX)
		seen.stalls[variant][i] = stalled < UINT32_MAX ? (uint32_t)stalled : UINT32_MAX;
}

static inline uint64_t body(uint64_t x)
{
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x * 0x2545f4914f6cdd1du;
}

static void work(struct mutator *me, struct incstack_thread *self)
{
	uint64_t x = 1;
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		x = body(x);
		__asm__ volatile("" : "+r"(x));
		if (atomic_load_explicit(&self->word, memory_order_relaxed))
			stall(me, self, false);
		if (atomic_load_explicit(&me->bare->word, memory_order_relaxed))
			stall(me, self, true);
	}
}

static void *mutator(void *argument)
{
	struct mutator *me = argument;
	struct incstack_thread *self;
	if (incstack_safepoint_attach(safepoint, &self))
		abort();
	self->context = me;
	if (!me->runs)
		incstack_thread_wait_begin(self);
	atomic_fetch_add(&attached, 1);
	while (!atomic_load(&go))
		futex(&go, FUTEX_WAIT, 0);
	if (me->runs)
		work(me, self);
	while (!atomic_load(&over))
		futex(&over, FUTEX_WAIT, 0);
	if (!me->runs)
		incstack_thread_wait_end(self);
	incstack_thread_detach(self);
	return NULL;
}

/* ---- trials --------------------------------------------------------------------------- */

/* Changes the priority. Among hundreds of threads that compute, an ordinary thread that wakes up
 * waits seconds for its turn. Returns false if the change is refused. */
static bool set_real_time(bool on)
{
	const struct sched_param priority = {.sched_priority = on};
	return pthread_setschedparam(pthread_self(),
				     (on ? SCHED_FIFO : SCHED_OTHER) | SCHED_RESET_ON_FORK,
				     &priority) == 0;
}

static void gap(void)
{
	struct timespec time = {.tv_nsec = GAP_NS + random_below(2 * GAP_NS)};
	nanosleep(&time, NULL);
}

/* Waits until a mutator wakes it after its stall. It uses a futex and no timer: setting a timer
 * before the other mutator has the processor back would be measured, too. */
static void await_samples(void)
{
	uint32_t done;
	while ((done = atomic_load(&trial.done)) < SAMPLES)
		futex(&trial.done, FUTEX_WAIT, done);
}

static uint64_t request(enum variant variant)
{
	struct incstack_request *request;
	struct incstack_request_options options = {
		.size = sizeof(options),
		.n = SAMPLES,
		.operation = variant == PARKING ? parking_operation : operation,
	};
	atomic_store(&trial.left, SAMPLES);
	uint64_t start = now();
	if (incstack_request_start(safepoint, &options, &request))
		abort();
	uint64_t returned = now();
	await_samples();
	gap();
	incstack_request_wait(request, 0, NULL);
	incstack_request_release(request);
	if (variant == PARTIAL)
		seen.requester[seen.count] = (uint32_t)(returned - start);
	return start;
}

static uint64_t full_stop(uint64_t *stopped)
{
	uint64_t start = now();
	if (incstack_safepoint_stop(safepoint, NULL, 0, NULL))
		abort();
	*stopped = now();
	incstack__safepoint_run_operation(safepoint, SAMPLES, 0, operation, NULL);
	incstack_safepoint_resume(safepoint, NULL);
	gap();
	return start;
}

/* Arms every thread, waits until those that run have arrived, and releases them. There are no
 * states, no races with threads that block, and no look-ups. */
static uint64_t bare_stop(uint32_t threads, uint64_t *stopped)
{
	uint32_t left, sampled = 0;
	uint64_t start = now();
	atomic_store(&trial.bare_left, 1);
	for (uint32_t i = 0; i < threads; i++) {
		if (bare[i].counts)
			atomic_fetch_add(&trial.bare_left, 1);
		atomic_store(&bare[i].word, 1);
	}
	atomic_fetch_sub(&trial.bare_left, 1);
	while ((left = atomic_load(&trial.bare_left)) != 0)
		futex(&trial.bare_left, FUTEX_WAIT, left);
	*stopped = now();
	for (uint32_t i = 0; i < threads && sampled < SAMPLES; sampled += mutators[i++].runs)
		if (mutators[i].runs)
			sample(&mutators[i]);
	atomic_fetch_add(&trial.bare_epoch, 1);
	futex(&trial.bare_epoch, FUTEX_WAKE, INT_MAX);
	gap();
	return start;
}

static void try(enum variant variant, uint32_t threads, uint32_t number)
{
	uint64_t stopped = 0, start;
	atomic_store(&trial.variant, variant);
	atomic_store(&trial.first, UINT64_MAX);
	atomic_store(&trial.last, 0);
	atomic_store(&trial.done, 0);
	if (variant == FULL)
		start = full_stop(&stopped);
	else if (variant == BARE)
		start = bare_stop(threads, &stopped);
	else
		start = request(variant);
	const uint64_t times[MEASURES] = {atomic_load(&trial.first), atomic_load(&trial.last),
					  stopped ? stopped : start};
	for (int i = 0; i < MEASURES; i++)
		seen.times[variant][i][number] = (uint32_t)(times[i] - start);
}

/* Runs all variants once in each round, in random order. */
static void measure(uint32_t threads)
{
	enum variant order[VARIANTS] = {FULL, PARTIAL, PARKING, BARE};
	uint64_t end = now() + TIME_NS;
	for (seen.count = 0; seen.count < trials && now() < end; seen.count++) {
		for (uint32_t i = VARIANTS; i > 1; i--) {
			uint32_t j = random_below(i);
			enum variant swapped = order[i - 1];
			order[i - 1] = order[j];
			order[j] = swapped;
		}
		for (int i = 0; i < VARIANTS; i++)
			try(order[i], threads, seen.count);
	}
}

/* ---- one configuration ----------------------------------------------------------------- */

static void start_mutators(uint32_t threads, uint32_t runnable)
{
	pthread_attr_t attr;
	atomic_store(&over, 0);
	atomic_store(&attached, 0);
	atomic_store(&go, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	for (uint32_t i = 0; i < threads; i++) {
		/* The threads that run are spread among the others. */
		mutators[i].bare = &bare[i];
		atomic_store(&bare[i].word, 0);
		mutators[i].runs = bare[i].counts =
			i * runnable / threads != (i + 1) * runnable / threads;
		for (int j = 0; j + 1 < FRAMES; j++)
			mutators[i].frames[j].caller = &mutators[i].frames[j + 1];
		if (pthread_create(&mutators[i].tid, &attr, mutator, &mutators[i]))
			abort();
	}
	pthread_attr_destroy(&attr);
	while (atomic_load(&attached) < threads)
		gap();
	atomic_store(&go, 1);
	futex(&go, FUTEX_WAKE, INT_MAX);
}

static void end_mutators(uint32_t threads)
{
	atomic_store(&over, 1);
	futex(&over, FUTEX_WAKE, INT_MAX);
	for (uint32_t i = 0; i < threads; i++)
		pthread_join(mutators[i].tid, NULL);
}

static struct percentile stall_of(enum variant variant)
{
	uint32_t count = atomic_load(&seen.stall_count[variant]);
	return percentile_of(seen.stalls[variant], count < STALLS_MAX ? count : STALLS_MAX, 0.5);
}

/* The interval of the ratio has the quotients of the outer ends, so it is wider than 95 %. */
static void print_row(uint32_t threads, uint32_t runnable, const char *name,
		      const struct percentile v[VARIANTS])
{
	const struct percentile *f = &v[FULL], *p = &v[PARTIAL];
	double ratio = f->value / p->value, low = f->low / p->high, high = f->high / p->low;
	if (csv)
		printf("%u,%u,%s,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.2f,%.2f,%.2f\n", threads, runnable,
		       name, f->value, f->low, f->high, p->value, p->low, p->high, ratio, low,
		       high);
	else
		printf("%7u %8u  %-10s %8.0f %8.0f-%-8.0f %7.0f %7.0f-%-7.0f %6.1f %5.1f-%-5.1f "
		       "%8.0f %8.0f\n",
		       threads, runnable, name, f->value, f->low, f->high, p->value, p->low,
		       p->high, ratio, low, high, v[PARKING].value, v[BARE].value);
}

static void report(uint32_t threads, uint32_t runnable)
{
	static const struct {
		const char *name;
		enum measure measure;
		double part;
	} rows[] = {
		{"first_p50", FIRST, 0.5}, {"first_p975", FIRST, 0.975}, {"last_p50", LAST, 0.5}};
	struct percentile values[VARIANTS];
	for (int row = 0; row < 3; row++) {
		for (int v = 0; v < VARIANTS; v++)
			values[v] = percentile_of(seen.times[v][rows[row].measure], seen.count,
						  rows[row].part);
		print_row(threads, runnable, rows[row].name, values);
	}
	for (enum variant v = 0; v < VARIANTS; v++)
		values[v] = stall_of(v);
	print_row(threads, runnable, "stall_p50", values);
	double full = percentile_of(seen.times[FULL][STOPPED], seen.count, 0.5).value;
	double barest = percentile_of(seen.times[BARE][STOPPED], seen.count, 0.5).value;
	fprintf(csv ? stderr : stdout,
		"%7u %8u  full stop %.0f ns, bare arm-and-wait %.0f ns: %.2f times; requester busy "
		"%.0f ns, at most %.0f ns; %u trials\n",
		threads, runnable, full, barest, full / barest,
		percentile_of(seen.requester, seen.count, 0.5).value,
		percentile_of(seen.requester, seen.count, 1).value, seen.count);
}

static void run(uint32_t threads, uint32_t runnable)
{
	if (incstack_safepoint_create(NULL, &safepoint))
		abort();
	for (int v = 0; v < VARIANTS; v++)
		atomic_store(&seen.stall_count[v], 0);
	start_mutators(threads, runnable);
	if (!set_real_time(runnable > SAMPLES))
		fprintf(csv ? stderr : stdout,
			"%7u %8u  the requester was refused a real-time priority: these times are "
			"those of the scheduler\n",
			threads, runnable);
	measure(threads);
	set_real_time(false);
	end_mutators(threads);
	incstack_safepoint_destroy(safepoint);
	report(threads, runnable);
}

static double loop_ns(struct incstack_thread *self, bool polls)
{
	const uint32_t rounds = 20000; /* short, so that some are not interrupted */
	uint64_t x = 1, start = now();
	if (polls)
		for (uint32_t i = 0; i < rounds; i++) {
			x = body(x);
			__asm__ volatile("" : "+r"(x));
			incstack_thread_poll(self);
		}
	else
		for (uint32_t i = 0; i < rounds; i++) {
			x = body(x);
			__asm__ volatile("" : "+r"(x));
		}
	return (double)(now() - start) / rounds;
}

static void poll_price(void)
{
	struct incstack_thread *self;
	uint32_t without[200], with[200];
	if (incstack_safepoint_create(NULL, &safepoint) ||
	    incstack_safepoint_attach(safepoint, &self))
		abort();
	for (int i = 0; i < 200; i++) { /* in picoseconds, so that they are whole */
		without[i] = (uint32_t)(loop_ns(self, false) * 1000);
		with[i] = (uint32_t)(loop_ns(self, true) * 1000);
	}
	struct percentile base = percentile_of(without, 200, 0.1),
			  polled = percentile_of(with, 200, 0.1);
	fprintf(csv ? stderr : stdout,
		"poll: %.2f ns (%.2f to %.2f) in a loop body of %.2f ns (%.2f ns with it)\n",
		(polled.value - base.value) / 1000, (polled.low - base.high) / 1000,
		(polled.high - base.low) / 1000, base.value / 1000, polled.value / 1000);
	incstack_thread_detach(self);
	incstack_safepoint_destroy(safepoint);
}

static void parse(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--csv"))
			csv = true;
		else if (!strcmp(argv[i], "--trials") && i + 1 < argc)
			trials = (uint32_t)strtoul(argv[++i], NULL, 0);
	}
	trials += trials == 0;
}

int main(int argc, char **argv)
{
	static const uint32_t threads[] = {8, 64, 512};
	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(argc, argv);
	for (int v = 0; v < VARIANTS; v++) {
		for (int m = 0; m < MEASURES; m++)
			seen.times[v][m] = calloc(trials, sizeof(uint32_t));
		seen.stalls[v] = calloc(STALLS_MAX, sizeof(uint32_t));
	}
	seen.requester = calloc(trials, sizeof(uint32_t));
	puts(csv ? "threads,runnable,measure,full,full_low,full_high,partial,partial_low,"
		   "partial_high,ratio,ratio_low,ratio_high"
		 : "threads runnable  measure        full            95 % partial          95 %  "
		   "ratio        95 %  parking     bare   (ns)");
	for (int i = 0; i < 6; i++)
		run(threads[i / 2], i % 2 ? threads[i / 2] : SAMPLES);
	poll_price();
	return 0;
}
