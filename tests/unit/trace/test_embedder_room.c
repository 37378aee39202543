/* SPDX-License-Identifier: MIT
 *
 * Tests that no trace of a stack that the embedder walks is cut for lack of room: nobody knows how
 * many frames the stack has before a walk. The frames are numbers, and 1 is the outermost.
 */
#include <stdlib.h>

#include <incstack/incstack.h>
#include <incstack/signal.h>

#include "trace/hooks.h"
#include "run_suite.h"

enum { DEEP = 100000, FRAME_BYTES = 32 };

static struct incstack_runtime *rt;
static struct incstack_stack *s;
static char armed[DEEP + 1];
static uintptr_t poll_frame;

static int caller(void *context, void *identity, struct incstack_frame *frame)
{
	(void)context;
	(void)identity;
	if (frame->sp == 1)
		return 0;
	frame->pc = --frame->sp;
	frame->flags = armed[frame->sp] ? INCSTACK_FRAME_ARMED : 0;
	return 1;
}

static int arm(void *context, void *identity, uintptr_t frame)
{
	(void)context;
	(void)identity;
	armed[frame] = 1;
	return 0;
}

static void disarm(void *context, void *identity, uintptr_t frame)
{
	(void)context;
	(void)identity;
	armed[frame] = 0;
}

static int interrupted(void *context, const struct incstack_interruption *interruption,
		       struct incstack_top *top)
{
	(void)context;
	(void)interruption;
	*top = (struct incstack_top){.pc = poll_frame, .sp = poll_frame};
	return 0;
}

static void open_stack(unsigned mode, uint64_t bytes)
{
	const struct incstack_embedder embedder = {.size = sizeof(embedder),
						   .signals.interrupted = interrupted};
	static const struct incstack_stack_walker walker = {sizeof(walker), caller, arm, disarm,
							    NULL};
	const struct incstack_options options = {
		.size = sizeof(options), .embedder = &embedder, .mode = mode, .stack_bytes = bytes};
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
	ck_assert_int_eq(incstack_stack_create_embedder(rt, &walker, NULL, &s), 0);
}

static void close_stack(void)
{
	incstack_stack_destroy(s);
	incstack_runtime_destroy(rt);
}

/* The frames above `end` return. */
static void return_from(uintptr_t frame, uintptr_t end)
{
	while (--frame > end)
		if (armed[frame]) {
			armed[frame] = 0;
			if (incstack_stack_returned(s, frame))
				ck_abort_msg("a return failed");
		}
}

static struct incstack_stats stats(void)
{
	struct incstack_stats now = {.size = sizeof(now)};
	ck_assert_int_eq(incstack_stack_stats(s, &now), 0);
	return now;
}

static void expect_whole(const struct incstack_trace *trace, uintptr_t frame)
{
	const struct incstack_frame_object *o = trace->top;
	for (; o && o->address == frame; o = o->parent)
		frame--;
	ck_assert_uint_eq(frame, 0);
	ck_assert_ptr_null(o);
}

static void expect_traces(uint64_t count, uintptr_t first)
{
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->count, count);
	ck_assert_uint_eq(tree->truncated, 0);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		expect_whole(t, first--);
	incstack_tree_release(tree);
	ck_assert_uint_eq(stats().lost_limit, 0);
	ck_assert_uint_eq(stats().truncated, 0);
}

static const unsigned modes[] = {INCSTACK_MODE_PATCH, INCSTACK_MODE_FULL};

/* Every sample is whole, from the first on, and stays whole when the frames return. */
START_TEST(polls_make_room)
{
	enum { SAMPLES = 20 };
	open_stack(modes[_i], 0);
	for (uintptr_t frame = DEEP; frame > DEEP - SAMPLES; frame--) {
		const struct incstack_top top = {.pc = frame, .sp = frame};
		ck_assert_int_eq(incstack_stack_sample_at_poll(s, frame, 1, &top), 0);
		return_from(frame, frame - 2);
	}
	return_from(DEEP - SAMPLES, 0);
	expect_traces(SAMPLES, DEEP);
	close_stack();
}
END_TEST

/* Requests of signal handlers are sampled at the next poll. */
START_TEST(drains_make_room)
{
	int ucontext = 0;
	open_stack(modes[_i], 0);
	ck_assert_int_eq(incstack_stack_queue_resize(s, 4), 0);
	poll_frame = DEEP;
	ck_assert_int_eq(incstack_stack_sample_signal(s, 1, 1, &ucontext), INCSTACK_QUEUED);
	const struct incstack_top top = {.pc = DEEP, .sp = DEEP};
	ck_assert_int_eq(incstack_stack_queue_drain(s, &top), 0);
	return_from(DEEP, 0);
	expect_traces(1, DEEP);
	close_stack();
}
END_TEST

/* A sample that may not allocate says that it has no room. It is counted, and leaves nothing
 * behind. */
START_TEST(samples_say_that_there_is_no_room)
{
	struct incstack_top top = {.pc = DEEP, .sp = DEEP};
	open_stack(INCSTACK_MODE_FULL, 0);
	const size_t room = incstack_stack_room(s);
	for (uint64_t i = 1; i <= 3; i++) {
		ck_assert_int_eq(incstack_stack_sample(s, 1, 1, &top), INCSTACK_EROOM);
		ck_assert_uint_eq(incstack_stack_room(s), room);
		ck_assert_uint_eq(stats().lost_limit, i);
		ck_assert_uint_eq(stats().truncated, 0);
	}
	top = (struct incstack_top){.pc = 1000, .sp = 1000};
	ck_assert_int_eq(incstack_stack_sample(s, 1, 1, &top), 0);
	ck_assert_int_eq(incstack_stack_reserve(s, (DEEP + 10) * FRAME_BYTES * 2), 0);
	top = (struct incstack_top){.pc = DEEP, .sp = DEEP};
	ck_assert_int_eq(incstack_stack_sample(s, 2, 1, &top), 0);
	ck_assert_int_eq(incstack__stack_verify(s), 0);
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->count, 2);
	ck_assert_uint_eq(tree->truncated, 0);
	expect_whole(tree->traces, 1000);
	expect_whole(tree->traces->next, DEEP);
	incstack_tree_release(tree);
	close_stack();
}
END_TEST

/* Beyond stack_bytes there is an error, and the traces that were taken before are whole. */
START_TEST(the_limit_is_an_error)
{
	struct incstack_top top = {.pc = 4000, .sp = 4000};
	open_stack(INCSTACK_MODE_FULL, 1 << 20);
	ck_assert_int_eq(incstack_stack_sample_at_poll(s, 1, 1, &top), 0);
	top = (struct incstack_top){.pc = DEEP, .sp = DEEP};
	ck_assert_int_eq(incstack_stack_sample_at_poll(s, 2, 1, &top), INCSTACK_ELIMIT);
	ck_assert_uint_eq(stats().lost_limit, 1);
	ck_assert_uint_eq(stats().truncated, 0);
	top = (struct incstack_top){.pc = 4001, .sp = 4001};
	ck_assert_int_eq(incstack_stack_sample_at_poll(s, 3, 1, &top), 0);
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->count, 2);
	expect_whole(tree->traces, 4000);
	expect_whole(tree->traces->next, 4001);
	incstack_tree_release(tree);
	close_stack();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("room for frames that the embedder walks");
	TCase *tc = tcase_create("deep stacks");
	tcase_add_loop_test(tc, polls_make_room, 0, 2);
	tcase_add_loop_test(tc, drains_make_room, 0, 2);
	tcase_add_test(tc, samples_say_that_there_is_no_room);
	tcase_add_test(tc, the_limit_is_an_error);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
