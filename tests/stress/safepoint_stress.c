/* SPDX-License-Identifier: MIT
 *
 * Stress of the safepoint coordinator: threads poll, block, exit and come back, while requests
 * overlap and time out, also at once, with yields injected between the steps of the protocol.
 * Counts every violation.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "safepoint/safepoint.h"

#define NS_PER_S UINT64_C(1000000000)
#define REQUESTERS 3
#define THREADS_MAX 1000
#define LISTED_MAX 32
#define STUCK_NS (60 * NS_PER_S)
#define CROWD 64 /* threads; more wait most of the time, or nothing would go on */

/* One mutator. Owned by its thread; `mark` is plain on purpose: an operation that
 * meets a thread that runs is a race that the thread sanitizer sees. */
struct mutator {
	struct incstack_thread *self;
	uint64_t seed, mark;
	_Atomic(uint64_t) id; /* for requesters, who may find it gone */
};

/* One request under test; operations find it by their argument. */
struct trial {
	_Atomic(uint32_t) operations, completions;
	_Atomic(uint64_t) who[THREADS_MAX + 8];
	uint64_t ids[LISTED_MAX]; /* the threads that were asked for; none: all */
	uint32_t n, listed;
};

static struct incstack_safepoint *safepoint;
static struct mutator mutators[THREADS_MAX];
static atomic_bool over_and_out;
static uint64_t seed = 1, duration, end_time;
static int thread_count = 8;
static _Atomic(uint64_t) requests, tickets, samples, over, twice, stuck, stops;

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint32_t draw(uint64_t *state, uint32_t limit)
{
	uint64_t x = *state;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return (uint32_t)((x >> 32) % limit);
}

static void injected(void *context, enum incstack__step step)
{
	static _Thread_local uint64_t state;
	(void)context;
	if (!state)
		state = (seed * 0x9e3779b97f4a7c15u) ^ (uintptr_t)&state;
	if (draw(&state, 8 + (uint32_t)step % 5) == 0)
		sched_yield();
}

static void operation(const struct incstack_ticket *ticket, void *argument)
{
	struct trial *trial = argument;
	if (ticket->thread->context)
		((struct mutator *)ticket->thread->context)->mark++;
	uint32_t i = atomic_fetch_add(&trial->operations, 1);
	if (i < THREADS_MAX + 8)
		atomic_store(&trial->who[i], ticket->thread->id);
	atomic_fetch_add(&samples, 1);
}

static void completed(struct incstack_request *request,
		      const struct incstack_request_result *result, void *argument)
{
	(void)request, (void)result;
	atomic_fetch_add(&((struct trial *)argument)->completions, 1);
}

static void attach(struct mutator *me)
{
	if (incstack_safepoint_attach(safepoint, &me->self))
		abort();
	me->self->context = me;
	atomic_store(&me->id, me->self->id);
}

static void mutate(struct mutator *me)
{
	uint32_t what = draw(&me->seed, 64);
	me->mark++;
	if (what == 0) {
		incstack_thread_detach(me->self);
		sched_yield();
		attach(me);
	} else if (what < 10 || (what < 40 && thread_count > CROWD)) {
		incstack_thread_wait_begin(me->self);
		if (thread_count > CROWD)
			usleep(draw(&me->seed, 20000));
		for (uint32_t i = draw(&me->seed, 4); i; i--)
			sched_yield();
		incstack_thread_wait_end(me->self);
	} else if (what < 14) {
		sched_yield();
	}
	incstack_thread_poll(me->self);
}

static void *mutator(void *argument)
{
	struct mutator *me = argument;
	attach(me);
	while (!atomic_load_explicit(&over_and_out, memory_order_relaxed)) {
		mutate(me);
		if (thread_count > 8)
			sched_yield();
	}
	incstack_thread_detach(me->self);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static bool asked_for(const struct trial *trial, uint64_t id)
{
	for (uint32_t i = 0; i < trial->listed; i++)
		if (trial->ids[i] == id)
			return true;
	return trial->listed == 0;
}

/* Twice the same thread, or one that was not asked for. */
static void count_doubles(struct trial *trial)
{
	uint64_t seen[THREADS_MAX + 8];
	uint32_t count = atomic_load(&trial->operations);
	if (count > THREADS_MAX + 8)
		count = THREADS_MAX + 8;
	for (uint32_t i = 0; i < count; i++)
		seen[i] = atomic_load(&trial->who[i]);
	qsort(seen, count, sizeof(seen[0]), compare);
	for (uint32_t i = 0; i < count; i++)
		if (!asked_for(trial, seen[i]) || (i && seen[i] == seen[i - 1]))
			atomic_fetch_add(&twice, 1);
}

static void check(struct trial *trial, struct incstack_request *request)
{
	struct incstack_request_result got = {.size = sizeof(got)};
	if (incstack_request_wait(request, STUCK_NS, &got) != 0) {
		atomic_fetch_add(&stuck, 1);
		return; /* its trial is leaked: it may still be written */
	}
	incstack_request_release(request);
	uint32_t count = atomic_load(&trial->operations);
	if (count > trial->n)
		atomic_fetch_add(&over, 1);
	if (got.taken != count || atomic_load(&trial->completions) != 1)
		atomic_fetch_add(&stuck, 1);
	count_doubles(trial);
	atomic_fetch_add(&tickets, trial->n);
	free(trial);
}

/* Some threads, some of them twice, some gone by now. */
static void list_some(struct trial *trial, uint64_t *state)
{
	trial->listed = 1 + draw(state, LISTED_MAX);
	for (uint32_t i = 0; i < trial->listed; i++)
		trial->ids[i] = atomic_load(&mutators[draw(state, (uint32_t)thread_count)].id);
}

static int begin_request(struct trial *trial, uint64_t *state, struct incstack_request **request)
{
	struct incstack_request_options options = {
		.size = sizeof(options),
		.ids = trial->listed ? trial->ids : NULL,
		.count = trial->listed,
		.n = trial->n,
		.flags = draw(state, 2) ? INCSTACK_REQUEST_WAITING : 0,
		.deadline_ns = draw(state, 4) ? 0 : 1 + draw(state, 200000),
		.operation = operation,
		.completed = completed,
		.argument = trial,
	};
	return incstack_request_start(safepoint, &options, request);
}

static struct trial *begin(uint64_t *state, struct incstack_request **request)
{
	struct trial *trial = calloc(1, sizeof(*trial));
	if (!trial)
		abort();
	trial->n = 1 + draw(state, (uint32_t)thread_count);
	uint32_t kind = draw(state, 4);
	if (kind <= 1)
		list_some(trial, state);
	if (kind == 0) /* one sample of one thread */
		trial->n = trial->listed = 1;
	if (begin_request(trial, state, request)) {
		free(trial);
		return NULL;
	}
	atomic_fetch_add(&requests, 1);
	return trial;
}

static void mark(const struct incstack_ticket *ticket, void *argument)
{
	(void)argument;
	if (ticket->thread->context)
		((struct mutator *)ticket->thread->context)->mark++;
}

static void full_stop(uint64_t *state)
{
	uint64_t limit = draw(state, 2) ? 0 : 1 + draw(state, 100000);
	if (incstack_safepoint_stop(safepoint, NULL, limit, NULL) == 0) {
		atomic_fetch_add(&stops, 1);
		incstack__safepoint_run_operation(safepoint, 1 + draw(state, 8),
						  draw(state, 2) ? INCSTACK_REQUEST_WAITING : 0,
						  mark, NULL);
		incstack_safepoint_resume(safepoint, NULL);
	}
}

static void *requester(void *argument)
{
	uint64_t state = seed * 7919 + (uintptr_t)argument * 104729 + 1;
	struct incstack_request *open[4];
	struct trial *trial[4];
	while (now() < end_time && !atomic_load(&stuck)) {
		uint32_t count = 1 + draw(&state, 4);
		for (uint32_t i = 0; i < count; i++)
			trial[i] = begin(&state, &open[i]);
		for (uint32_t i = draw(&state, 3); i; i--)
			sched_yield();
		for (uint32_t i = 0; i < count; i++) {
			if (!trial[i])
				continue;
			if (draw(&state, 3) == 0)
				incstack__request_expire(open[i]);
			check(trial[i], open[i]);
		}
		if (draw(&state, 16) == 0)
			full_stop(&state);
	}
	return NULL;
}

static void parse(int argc, char **argv)
{
	uint64_t seconds = 2;
	for (int i = 1; i + 1 < argc; i += 2) {
		uint64_t value = strtoull(argv[i + 1], NULL, 0);
		if (!strcmp(argv[i], "--seconds"))
			seconds = value;
		else if (!strcmp(argv[i], "--seed"))
			seed = value ? value : 1;
		else if (!strcmp(argv[i], "--threads") && value >= 1 && value <= THREADS_MAX)
			thread_count = (int)value;
	}
	duration = seconds * NS_PER_S;
}

static uint64_t report(void)
{
	printf("full safepoints: %llu\n", (unsigned long long)atomic_load(&stops));
	printf("safepoint: requests=%llu tickets=%llu samples=%llu over=%llu double=%llu "
	       "stuck=%llu\n",
	       (unsigned long long)atomic_load(&requests),
	       (unsigned long long)atomic_load(&tickets), (unsigned long long)atomic_load(&samples),
	       (unsigned long long)atomic_load(&over), (unsigned long long)atomic_load(&twice),
	       (unsigned long long)atomic_load(&stuck));
	fflush(stdout);
	return atomic_load(&over) + atomic_load(&twice) + atomic_load(&stuck);
}

int main(int argc, char **argv)
{
	static pthread_t mutating[THREADS_MAX], requesting[REQUESTERS];
	parse(argc, argv);
	struct incstack_safepoint_options options = {.size = sizeof(options), .seed = seed};
	if (incstack_safepoint_create(&options, &safepoint))
		return 1;
	incstack__safepoint_hook(safepoint, injected, NULL);
	for (int i = 0; i < thread_count; i++) {
		mutators[i].seed = seed + 1 + (uint64_t)i * 0x9e3779b97f4a7c15u;
		if (pthread_create(&mutating[i], NULL, mutator, &mutators[i]))
			return 1;
	}
	end_time = now() + duration;
	for (uintptr_t i = 0; i < REQUESTERS; i++)
		if (pthread_create(&requesting[i], NULL, requester, (void *)i))
			return 1;
	for (int i = 0; i < REQUESTERS; i++)
		pthread_join(requesting[i], NULL);
	if (atomic_load(&stuck)) {
		report();
		_Exit(1); /* the threads may be stuck, too */
	}
	atomic_store(&over_and_out, true);
	for (int i = 0; i < thread_count; i++)
		pthread_join(mutating[i], NULL);
	if (incstack__safepoint_in_use(safepoint))
		atomic_fetch_add(&stuck, 1);
	incstack_safepoint_destroy(safepoint);
	return report() != 0;
}
