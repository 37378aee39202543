/* SPDX-License-Identifier: MIT
 *
 * Tests traces of a set of threads, requested and retrieved by one call each: also without
 * memory, with threads that reach no poll, and while threads run. The stacks are lists of frames
 * that the test walks itself. The program is linked with --wrap, so that the Nth allocation
 * fails.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include <incstack/tracer.h>

#include "failing.h"
#include "run_suite.h"

/* ---- stacks: a frame is a number, its caller is the next smaller one ---- */

struct player {
	struct incstack_thread *thread;
	struct incstack_stack *stack;
	_Atomic(uintptr_t) depth;
	bool armed[16];
	bool absent; /* has nothing to sample */
};

static int caller(void *context, void *identity, struct incstack_frame *frame)
{
	const struct player *player = identity;
	(void)context;
	if (frame->sp == 1)
		return 0;
	frame->sp--;
	frame->pc = 100 + frame->sp;
	frame->flags =
		INCSTACK_FRAME_DECODE_NOW | (player->armed[frame->sp] ? INCSTACK_FRAME_ARMED : 0u);
	return 1;
}

static int arm_frame(void *context, void *identity, uintptr_t frame)
{
	(void)context;
	((struct player *)identity)->armed[frame] = true;
	return 0;
}

static void disarm_frame(void *context, void *identity, uintptr_t frame)
{
	(void)context;
	((struct player *)identity)->armed[frame] = false;
}

static const struct incstack_embedder embedder = {.size = sizeof(embedder)};
static const struct incstack_stack_walker walker = {sizeof(walker), caller, arm_frame, disarm_frame,
						    NULL};

static struct incstack_runtime *runtime;
static struct incstack_safepoint *safepoint;
static struct incstack_tracer *tracer;
static struct player players[4];

static int locate(void *context, const struct incstack_ticket *ticket,
		  struct incstack_stack **stack, struct incstack_top *top)
{
	struct player *player = ticket->thread->context;
	if (context != &players) /* an assertion of Check would allocate */
		abort();
	if (player->absent)
		return INCSTACK_EUNWIND;
	*stack = player->stack;
	if (top) {
		uintptr_t depth = atomic_load(&player->depth);
		*top = (struct incstack_top){.pc = 100 + depth,
					     .sp = depth,
					     .flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_DECODE_NOW};
	}
	return 0;
}

static void attach(struct player *player)
{
	ck_assert_int_eq(incstack_safepoint_attach(safepoint, &player->thread), 0);
	player->thread->context = player;
	ck_assert_int_eq(incstack_stack_create_embedder(runtime, &walker, player, &player->stack),
			 0);
	atomic_store(&player->depth, 10);
}

/* Players from `running` on wait. */
static void begin(int running)
{
	const struct incstack_options options = {
		.size = sizeof(options), .distance = 1, .embedder = &embedder};
	const struct incstack_tracer_options all = {
		.size = sizeof(all), .locate = locate, .context = &players};
	struct incstack_tracer_options made = all;

	ck_assert_int_eq(incstack_runtime_create(&options, &runtime), 0);
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	made.safepoint = safepoint;
	ck_assert_int_eq(incstack_tracer_create(&made, &tracer), 0);
	for (int i = 0; i < 4; i++) {
		players[i] = (struct player){0};
		if (running < 0)
			continue;
		attach(&players[i]);
		if (i >= running)
			incstack_thread_wait_begin(players[i].thread);
	}
}

static void detach(struct player *player)
{
	incstack_stack_set_owner(player->stack);
	incstack_stack_destroy(player->stack);
	incstack_thread_wait_end(player->thread);
	ck_assert_int_eq(incstack_thread_detach(player->thread), 0);
}

static void end(void)
{
	for (int i = 0; i < 4; i++)
		if (players[i].stack)
			detach(&players[i]);
	incstack_tracer_destroy(tracer);
	incstack_safepoint_destroy(safepoint);
	incstack_runtime_destroy(runtime);
}

/* Returns from frames, as the embedder must: barriers are announced. */
static void pop_to(struct player *player, uintptr_t depth)
{
	incstack_stack_set_owner(player->stack);
	for (uintptr_t d = atomic_load(&player->depth); d > depth; d--) {
		if (player->armed[d - 1])
			incstack_stack_returned(player->stack, d - 1);
		atomic_store(&player->depth, d - 1);
	}
}

static void request(uint64_t id, uint32_t n, uint64_t weight)
{
	const struct incstack_tracer_request options = {.size = sizeof(options),
							.n = n,
							.flags = INCSTACK_REQUEST_WAITING,
							.id = id,
							.weight = weight};
	ck_assert_int_eq(incstack_tracer_request(tracer, &options, NULL), 0);
}

/* A complete trace of the player's stack from the given depth. */
static void expect_whole(const struct incstack_trace *trace, uintptr_t depth)
{
	const struct incstack_frame_object *o = trace->top;
	for (; depth > 1; depth--, o = o->parent) {
		ck_assert_ptr_nonnull(o);
		ck_assert_uint_eq(o->function, 100 + depth);
	}
	ck_assert(o->flags & INCSTACK_OBJECT_BASE);
}

static uint64_t count_traces(const struct incstack_traces *traces, unsigned *threads)
{
	uint64_t sum = 0;
	*threads = 0;
	for (const struct incstack_thread_traces *t = traces->threads; t; t = t->next) {
		uint64_t seen = 0;
		for (const struct incstack_trace *one = t->tree->traces; one; one = one->next)
			seen++;
		ck_assert_uint_eq(seen, t->tree->count);
		ck_assert_uint_gt(seen, 0);
		sum += seen;
		++*threads;
	}
	return sum;
}

static struct incstack_traces *retrieve(const uint64_t *ids, uint32_t count, uint64_t timeout)
{
	struct incstack_traces *traces = NULL;
	ck_assert_int_eq(incstack_tracer_retrieve(tracer, ids, count, timeout, &traces), 0);
	return traces;
}

START_TEST(one_call_requests_and_one_retrieves)
{
	unsigned threads;
	begin(0);
	request(7, 4, 3);
	pop_to(&players[2], 5);
	request(8, 4, 0);
	struct incstack_traces *traces = retrieve(NULL, 0, 0);
	ck_assert_uint_eq(count_traces(traces, &threads), 8);
	ck_assert_uint_eq(threads, 4);
	ck_assert_uint_eq(traces->missing, 0);
	for (const struct incstack_thread_traces *t = traces->threads; t; t = t->next) {
		const struct incstack_trace *first = t->tree->traces, *second = first->next;
		ck_assert_uint_eq(first->id, 7);
		ck_assert_uint_eq(first->weight, 3);
		ck_assert_uint_eq(second->id, 8);
		ck_assert_uint_gt(second->weight, 0);
		expect_whole(first, 10);
		expect_whole(second, t->thread == players[2].thread->id ? 5 : 10);
	}
	incstack_traces_release(traces);
	traces = retrieve(NULL, 0, 0); /* nothing is left */
	ck_assert_ptr_null(traces->threads);
	incstack_traces_release(traces);
	end();
}
END_TEST

START_TEST(only_the_listed_threads_are_retrieved)
{
	unsigned threads;
	begin(0);
	request(1, 4, 1);
	const uint64_t ids[] = {players[1].thread->id, players[3].thread->id, 12345};
	struct incstack_traces *traces = retrieve(ids, 3, 0);
	ck_assert_uint_eq(count_traces(traces, &threads), 2);
	for (const struct incstack_thread_traces *t = traces->threads; t; t = t->next)
		ck_assert(t->thread == ids[0] || t->thread == ids[1]);
	incstack_traces_release(traces);
	traces = retrieve(NULL, 0, 0);
	ck_assert_uint_eq(count_traces(traces, &threads), 2);
	incstack_traces_release(traces);
	end();
}
END_TEST

START_TEST(a_thread_without_a_poll_keeps_its_traces)
{
	unsigned threads;
	begin(1); /* player 0 runs */
	request(1, 4, 1);
	incstack_tracer_destroy(tracer); /* does nothing */
	incstack_thread_poll(players[0].thread);
	struct incstack_traces *traces = retrieve(NULL, 0, 1000000);
	ck_assert_uint_eq(count_traces(traces, &threads), 3);
	ck_assert_uint_eq(traces->missing, 1);
	incstack_traces_release(traces);
	incstack_thread_poll(players[0].thread); /* too late for that one */
	incstack_thread_wait_begin(players[0].thread);
	traces = retrieve(NULL, 0, 0);
	ck_assert_uint_eq(count_traces(traces, &threads), 1);
	ck_assert_uint_eq(traces->threads->thread, players[0].thread->id);
	incstack_traces_release(traces);
	end();
}
END_TEST

START_TEST(what_is_not_sampled_is_counted)
{
	struct incstack_tracer_stats stats = {.size = sizeof(stats)};
	begin(0);
	players[1].absent = true;
	request(1, 4, 1);
	incstack_stack_set_mode(players[2].stack, INCSTACK_MODE_FULL);
	atomic_store(&players[3].depth, 0); /* no frame has this name */
	request(2, 4, 1);
	incstack_traces_release(retrieve(NULL, 0, 0));
	ck_assert_int_eq(incstack_tracer_stats(tracer, &stats), 0);
	ck_assert_uint_eq(stats.empty, 2);
	ck_assert_uint_eq(stats.refused, 1);
	ck_assert_uint_eq(stats.samples, 5);
	ck_assert_uint_eq(stats.retrieved, 5);
	end();
}
END_TEST

/* Whichever allocation fails, all traces are there in the end. */
START_TEST(without_memory_no_trace_is_lost)
{
	int errors = 0, missing = 0;
	for (long n = 0; n < 24; n++) {
		struct incstack_traces *traces = NULL;
		unsigned threads;
		uint64_t sum = 0;
		begin(0);
		request(1, 4, 1);
		request(2, 4, 1);
		arm(n, false);
		int error = incstack_tracer_retrieve(tracer, NULL, 0, 0, &traces);
		disarm();
		errors += error != 0;
		ck_assert(error == 0 || error == INCSTACK_ENOMEM);
		if (!error) {
			missing += (int)traces->missing;
			sum = count_traces(traces, &threads);
			ck_assert_uint_eq(threads + traces->missing, 4);
			incstack_traces_release(traces);
		}
		traces = retrieve(NULL, 0, 0);
		ck_assert_uint_eq(sum + count_traces(traces, &threads), 8);
		incstack_traces_release(traces);
		end();
	}
	ck_assert_int_gt(errors, 0);
	ck_assert_int_gt(missing, 0);
}
END_TEST

START_TEST(requests_without_memory_do_nothing)
{
	const struct incstack_tracer_request options = {.size = sizeof(options), .n = 1};
	begin(0);
	arm(0, false);
	ck_assert_int_eq(incstack_tracer_request(tracer, &options, NULL), INCSTACK_ENOMEM);
	disarm();
	const struct incstack_tracer_request none = {.size = sizeof(none)};
	ck_assert_int_eq(incstack_tracer_request(tracer, &none, NULL), INCSTACK_EINVAL);
	end();
}
END_TEST

/* ---- threads that run ---- */

static _Atomic(bool) over, dismissed;
static _Atomic(int) attached;

static void *play(void *argument)
{
	struct player *player = argument;
	attach(player);
	atomic_fetch_add(&attached, 1);
	while (!atomic_load(&over)) {
		incstack_thread_poll(player->thread);
		pop_to(player, 3);
		incstack_thread_poll(player->thread);
		incstack_stack_set_owner(player->stack);
		atomic_store(&player->depth, 10);
	}
	incstack_thread_wait_begin(player->thread);
	atomic_fetch_sub(&attached, 1);
	while (!atomic_load(&dismissed))
		sched_yield();
	detach(player); /* only the thread that attached may */
	player->stack = NULL;
	return NULL;
}

START_TEST(nothing_is_lost_while_threads_run)
{
	struct incstack_tracer_stats stats = {.size = sizeof(stats)};
	pthread_t running[4];
	uint64_t sum = 0;
	unsigned threads;
	begin(-1);
	atomic_store(&over, false);
	atomic_store(&dismissed, false);
	atomic_store(&attached, 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&running[i], NULL, play, &players[i]);
	while (atomic_load(&attached) < 4)
		sched_yield();
	for (uint64_t i = 0; i < 2000; i++) {
		/* The first one waits for its samples, however busy the machine is. */
		const struct incstack_tracer_request options = {.size = sizeof(options),
								.n = 2,
								.id = i,
								.deadline_ns = i > 0 ? 100000 : 0};
		struct incstack_request *handle;
		ck_assert_int_eq(incstack_tracer_request(tracer, &options, &handle), 0);
		ck_assert_int_eq(incstack_request_wait(handle, 0, NULL), 0);
		incstack_request_release(handle);
		if (i % 50)
			continue;
		struct incstack_traces *traces = retrieve(NULL, 0, i % 100 ? 0 : 10000);
		sum += count_traces(traces, &threads);
		for (struct incstack_thread_traces *t = traces->threads; t; t = t->next)
			ck_assert_uint_eq(t->tree->truncated, 0);
		incstack_traces_release(traces);
	}
	atomic_store(&over, true);
	while (atomic_load(&attached) > 0)
		sched_yield();
	struct incstack_traces *traces = retrieve(NULL, 0, 0);
	sum += count_traces(traces, &threads);
	incstack_traces_release(traces);
	atomic_store(&dismissed, true);
	for (int i = 0; i < 4; i++)
		pthread_join(running[i], NULL);
	incstack_tracer_stats(tracer, &stats);
	ck_assert_uint_ge(sum, 2);
	ck_assert_uint_eq(stats.samples, sum);
	ck_assert_uint_eq(stats.retrieved, sum);
	ck_assert_uint_eq(stats.refused, 0);
	end();
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
	struct incstack_tracer_options options = {.size = sizeof(options), .locate = locate};
	struct incstack_tracer_request asked = {.size = 1};
	struct incstack_tracer_stats stats = {0};
	struct incstack_tracer *made;
	struct incstack_traces *traces;
	begin(0);
	ck_assert_int_eq(incstack_tracer_create(NULL, &made), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_tracer_create(&options, &made), INCSTACK_EINVAL);
	options.safepoint = safepoint;
	ck_assert_int_eq(incstack_tracer_create(&options, NULL), INCSTACK_EINVAL);
	options.size--;
	ck_assert_int_eq(incstack_tracer_create(&options, &made), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_tracer_request(tracer, NULL, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_tracer_request(tracer, &asked, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_tracer_retrieve(NULL, NULL, 0, 0, &traces), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_tracer_retrieve(tracer, NULL, 0, 0, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_tracer_retrieve(tracer, NULL, 1, 0, &traces), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_tracer_stats(tracer, &stats), INCSTACK_EINVAL);
	incstack_tracer_destroy(NULL);
	incstack_traces_release(NULL);
	end();
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("tracer");
	Suite *suite = suite_create("tracer");

	tcase_add_test(tests, one_call_requests_and_one_retrieves);
	tcase_add_test(tests, only_the_listed_threads_are_retrieved);
	tcase_add_test(tests, a_thread_without_a_poll_keeps_its_traces);
	tcase_add_test(tests, what_is_not_sampled_is_counted);
	tcase_add_test(tests, without_memory_no_trace_is_lost);
	tcase_add_test(tests, requests_without_memory_do_nothing);
	tcase_add_test(tests, nothing_is_lost_while_threads_run);
	tcase_add_test(tests, bad_arguments_are_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
