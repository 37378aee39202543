/* SPDX-License-Identifier: MIT
 *
 * Runs the trials of a configuration: the mutators, the samples, and the requests of each variant.
 */
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "safepoint/safepoint_step.h"
#include "trials.h"

#define THREADS_MAX 512
#define FRAMES 100                    /* that a sample reads */
#define TIME_NS UINT64_C(20000000000) /* of a configuration, at most */
#define GAP_NS 500000                 /* between trials, at least; at most three times this */

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

struct seen seen;
uint32_t trials = 200;

static struct mutator mutators[THREADS_MAX];
static struct bare bare[THREADS_MAX];
static struct incstack_safepoint *safepoint;
static _Atomic(uint32_t) attached, go, over; /* slept on: go by all, over by waiting threads */
static uint64_t seed = 1;

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

bool run_trials(uint32_t threads, uint32_t runnable)
{
	if (incstack_safepoint_create(NULL, &safepoint))
		abort();
	for (int v = 0; v < VARIANTS; v++)
		atomic_store(&seen.stall_count[v], 0);
	start_mutators(threads, runnable);
	const bool real_time = set_real_time(runnable > SAMPLES);
	measure(threads);
	set_real_time(false);
	end_mutators(threads);
	incstack_safepoint_destroy(safepoint);
	return real_time;
}
