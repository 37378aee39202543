/* SPDX-License-Identifier: MIT
 *
 * Tests that no request ends with too few samples while enough threads live: two to eight
 * requesters on one to four threads that wait, poll, or alternate, with full safepoints in
 * between. Each request must get all its samples, of different threads. The argument is the
 * number of requests, over all configurations.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "safepoint/safepoint_step.h"

#define THREADS_MAX 4
#define REQUESTERS_MAX 8

enum kind { WAIT, POLL, BOTH, KINDS };

/* One request: which threads were sampled for it. */
struct trial {
	_Atomic(uint32_t) threads, operations;
};

struct requester {
	pthread_t thread;
	uint64_t seed, count, samples;
	uint64_t wrong_state, wrong_count;
};

static struct incstack_safepoint *safepoint;
static atomic_bool over;
static _Atomic(uint32_t) ready;
static enum kind kind;
static uint32_t thread_count;
static _Atomic(uint64_t) operations, stops, twice;

static uint32_t draw(uint64_t *state, uint32_t limit)
{
	uint64_t x = *state;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return (uint32_t)((x >> 32) % limit);
}

static void operation(const struct incstack_ticket *ticket, void *argument)
{
	struct trial *trial = argument;
	uint32_t bit = UINT32_C(1) << (uintptr_t)ticket->thread->context;
	if (atomic_fetch_or(&trial->threads, bit) & bit)
		atomic_fetch_add(&twice, 1);
	atomic_fetch_add(&trial->operations, 1);
	atomic_fetch_add(&operations, 1);
}

static void *mutator(void *argument)
{
	struct incstack_thread *self;
	if (incstack_safepoint_attach(safepoint, &self))
		abort();
	self->context = argument;
	bool waits = kind == WAIT;
	if (waits)
		incstack_thread_wait_begin(self);
	atomic_fetch_add(&ready, 1);
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		if (kind == BOTH) {
			incstack_thread_wait_begin(self);
			incstack_thread_wait_end(self);
		}
		if (waits)
			usleep(1000);
		else
			incstack_thread_poll(self);
		sched_yield();
	}
	if (waits)
		incstack_thread_wait_end(self);
	incstack_thread_detach(self);
	return NULL;
}

static int start(struct requester *me, struct trial *trial, uint32_t n,
		 struct incstack_request **request)
{
	uint64_t id = 1 + draw(&me->seed, thread_count); /* the threads' ids are 1.. */
	struct incstack_request_options options = {
		.size = sizeof(options),
		.n = n,
		.flags = INCSTACK_REQUEST_WAITING,
		.operation = operation,
		.argument = trial,
	};
	if (n == 1 && draw(&me->seed, 2)) {
		options.ids = &id;
		options.count = 1;
	}
	return incstack_request_start(safepoint, &options, request);
}

static void one(struct requester *me)
{
	struct trial trial = {.operations = 0};
	struct incstack_request_result result = {.size = sizeof(result)};
	struct incstack_request *request;
	uint32_t n = 1 + draw(&me->seed, thread_count);
	if (start(me, &trial, n, &request))
		abort();
	incstack_request_wait(request, 0, &result);
	incstack_request_release(request);
	me->samples += result.taken;
	me->wrong_state += result.state != INCSTACK_REQUEST_COMPLETE;
	me->wrong_count += result.taken != n || trial.operations != n ||
			   (uint32_t)__builtin_popcount(trial.threads) != n;
}

static void *requester(void *argument)
{
	struct requester *me = argument;
	for (uint64_t i = 0; i < me->count; i++)
		one(me);
	return NULL;
}

static void *stopper(void *argument)
{
	(void)argument;
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		if (incstack_safepoint_stop(safepoint, NULL, 0, NULL))
			abort();
		sched_yield();
		incstack_safepoint_resume(safepoint, NULL);
		atomic_fetch_add(&stops, 1);
		usleep(100);
	}
	return NULL;
}

static void create(pthread_t *thread, void *(*function)(void *), void *argument)
{
	if (pthread_create(thread, NULL, function, argument))
		abort();
}

/* Returns how many requests went wrong. */
static uint64_t configuration(uint32_t requesters, uint64_t count)
{
	struct requester all[REQUESTERS_MAX];
	pthread_t threads[THREADS_MAX], stopping;
	uint64_t samples = 0, wrong = 0;
	over = false;
	ready = 0;
	operations = 0;
	if (incstack_safepoint_create(NULL, &safepoint))
		abort();
	for (uintptr_t i = 0; i < thread_count; i++)
		create(&threads[i], mutator, (void *)i);
	while (ready < thread_count)
		sched_yield();
	create(&stopping, stopper, NULL);
	for (uint32_t i = 0; i < requesters; i++) {
		all[i] = (struct requester){.seed = 1 + i + count, .count = count};
		create(&all[i].thread, requester, &all[i]);
	}
	for (uint32_t i = 0; i < requesters; i++) {
		pthread_join(all[i].thread, NULL);
		samples += all[i].samples;
		wrong += all[i].wrong_state + all[i].wrong_count;
	}
	over = true;
	pthread_join(stopping, NULL);
	for (uint32_t i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	wrong += samples != operations;
	wrong += incstack__safepoint_in_use(safepoint);
	incstack_safepoint_destroy(safepoint);
	return wrong;
}

int main(int argc, char **argv)
{
	uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000, made = 0, wrong = 0;
	uint64_t each = wanted / (THREADS_MAX * (REQUESTERS_MAX - 1) * KINDS);
	for (int k = WAIT; k < KINDS; k++)
		for (thread_count = 1; thread_count <= THREADS_MAX; thread_count++)
			for (uint32_t requesters = 2; requesters <= REQUESTERS_MAX; requesters++) {
				kind = (enum kind)k;
				made += (each / requesters + 1) * requesters;
				wrong += configuration(requesters, each / requesters + 1);
			}
	printf("requests: %llu, full safepoints: %llu, wrong: %llu, twice: %llu\n",
	       (unsigned long long)made, (unsigned long long)atomic_load(&stops),
	       (unsigned long long)wrong, (unsigned long long)atomic_load(&twice));
	return wrong || twice;
}
