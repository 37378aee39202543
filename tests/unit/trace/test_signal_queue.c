/* SPDX-License-Identifier: MIT
 *
 * Tests the queue of signal handlers' requests, one thing at a time: its elements, its size, and
 * every way to lose a request.
 */
#include <pthread.h>

#include "run_suite.h"
#include "signal_queue.h"
#include "taken.h"

/* Five frames without positions inside, and a queue. */
static void open_five_with(struct incstack_options options, uint32_t capacity)
{
	sim.usual = true;
	open_with_queue(options, capacity);
	for (int i = 1; i < 5; i++) {
		sim_call();
		sim_top()->function = 1;
	}
}

static void open_five(uint32_t capacity)
{
	open_five_with((struct incstack_options){.distance = 1}, capacity);
	ck_assert_int_eq(incstack_stack_reserve(sim.s, 1 << 16), 0);
}

static void close_five(void)
{
	const struct incstack_signal_stats stats = stats_now();
	ck_assert_uint_eq(accounted(&stats), stats.requests);
	sim.depth = 0; /* their slots were never patched by calls of sim_call */
	incstack_stack_destroy(sim.s);
	incstack_runtime_destroy(sim.rt);
	ck_assert_uint_eq(sim.live, 0);
}

static int ask(enum state what, uint64_t id)
{
	state = what;
	sim.random = 2; /* see interrupted() */
	return incstack_stack_sample_signal(sim.s, id, 10, sim_top());
}

static struct incstack_top poll_top(void)
{
	return (struct incstack_top){.pc = sim_top()->pc, .sp = sim_top()->sp, .fp = sim_top()->fp};
}

START_TEST(without_a_queue)
{
	open_five(0);
	ck_assert_int_eq(ask(DESCRIBED, 1), 0);
	ck_assert_int_eq(ask(PROMISED, 1), INCSTACK_EUNWIND);
	ck_assert_int_eq(ask(UNKNOWN, 1), INCSTACK_ERANGE);
	ck_assert_uint_eq(sim_stats().lost_unwind, 1);
	ck_assert_uint_eq(incstack__queue_pending(sim.s), 0);
	const struct incstack_signal_stats stats = stats_now();
	ck_assert_uint_eq(stats.failed[INCSTACK_FAILED_UNWIND], 1);
	ck_assert_uint_eq(stats.failed[INCSTACK_FAILED_STATE], 1);
	ck_assert_uint_eq(stats.in_handler, 1);
	ck_assert_uint_eq(stats.capacity, 0);
	close_five();
}
END_TEST

/* Two equal requests are one element, and a full queue refuses. */
START_TEST(elements)
{
	struct queued e;
	open_five(2);
	ck_assert_int_eq(ask(PROMISED, 1), INCSTACK_QUEUED);
	ck_assert_int_eq(ask(PROMISED, 2), INCSTACK_QUEUED);
	ck_assert_int_eq(ask(ENDING, 3), INCSTACK_QUEUED);
	ck_assert_int_eq(ask(PROMISED, 4), INCSTACK_ELIMIT);
	ck_assert_uint_eq(incstack__queue_pending(sim.s), 2);
	e = element(0);
	ck_assert_uint_eq(e.id, 1);
	ck_assert_uint_eq(e.weight, 20);
	ck_assert_uint_eq(e.count, 2);
	ck_assert_int_eq(e.reason, INCSTACK_EUNWIND);
	ck_assert_uint_eq(e.top.slot, sim_top()->slot);
	e = element(-1);
	ck_assert_uint_eq(e.id, 3);
	e = element(-2);
	ck_assert_uint_eq(e.id, 1);
	const struct incstack_signal_stats stats = stats_now();
	ck_assert_uint_eq(stats.pending, 3);
	ck_assert_uint_eq(stats.merged, 1);
	ck_assert_uint_eq(stats.attempts, 4);
	ck_assert_uint_eq(stats.capacity, 2);
	ck_assert_uint_eq(stats.failed[INCSTACK_FAILED_FULL], 1);
	close_five();
}
END_TEST

/* A frame was captured in between: the same top may have other callers. */
START_TEST(equal_tops_after_a_sample)
{
	open_five(4);
	ck_assert_int_eq(ask(PROMISED, 1), INCSTACK_QUEUED);
	ck_assert_int_eq(ask(DESCRIBED, 2), 0);
	ck_assert_int_eq(ask(PROMISED, 3), INCSTACK_QUEUED);
	ck_assert_uint_eq(incstack__queue_pending(sim.s), 2);
	close_five();
}
END_TEST

START_TEST(resized)
{
	struct queued e;
	open_five(3);
	ck_assert_int_eq(ask(PROMISED, 1), INCSTACK_QUEUED);
	ck_assert_int_eq(ask(ENDING, 2), INCSTACK_QUEUED);
	ck_assert_int_eq(ask(PROMISED, 3), INCSTACK_QUEUED);
	ck_assert_int_eq(incstack_stack_queue_resize(sim.s, 100), 0);
	ck_assert_uint_eq(incstack__queue_pending(sim.s), 3);
	ck_assert_int_eq(incstack_stack_queue_resize(sim.s, 2), 0);
	ck_assert_uint_eq(incstack__queue_pending(sim.s), 2);
	e = element(0);
	ck_assert_uint_eq(e.id, 1);
	ck_assert_uint_eq(stats_now().failed[INCSTACK_FAILED_DROPPED], 1);
	ck_assert_int_eq(incstack_stack_queue_resize(sim.s, (1 << 20) + 1), INCSTACK_EINVAL);
	sim.fail_above = 1;
	ck_assert_int_eq(incstack_stack_queue_resize(sim.s, 7), INCSTACK_ENOMEM);
	sim.fail_above = 0;
	ck_assert_uint_eq(stats_now().capacity, 2);
	ck_assert_int_eq(incstack_stack_queue_resize(sim.s, 0), 0);
	ck_assert_uint_eq(stats_now().failed[INCSTACK_FAILED_DROPPED], 3);
	close_five();
}
END_TEST

/* Requests that come during the drain stay in the queue, and no longer promise anything. */
START_TEST(during_a_drain)
{
	struct queued e;
	open_five(4);
	const struct incstack_top top = poll_top();
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), 0);
	ck_assert_int_eq(ask(PROMISED, 1), INCSTACK_QUEUED);
	sim.random = 3; /* decoded now */
	ck_assert_int_eq(incstack_stack_sample_signal(sim.s, 2, 1, sim_top()), INCSTACK_QUEUED);
	signals_in_decode = 1;
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), 0);
	ck_assert_int_eq(signals_in_decode, 0);
	ck_assert_uint_eq(incstack__queue_pending(sim.s), 1);
	e = element(0);
	ck_assert_uint_eq(e.top.flags & INCSTACK_TOP_STAYS, 0);
	ck_assert_uint_eq(stats_now().attempts, 1);
	ck_assert_uint_eq(stats_now().from_queue, 2);
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), 0);
	ck_assert_uint_eq(stats_now().from_queue, 2);
	ck_assert_uint_eq(stats_now().biased, 1);
	ck_assert_uint_eq(stats_now().drains, 2);
	close_five();
}
END_TEST

/* Jumps out of handlers left a place half written, and a drain with a request that it had
 * removed. */
START_TEST(left_by_jumps)
{
	open_five(4);
	const struct incstack_top top = poll_top();
	ck_assert_int_eq(ask(PROMISED, 1), INCSTACK_QUEUED);
	ck_assert_int_eq(ask(ENDING, 2), INCSTACK_QUEUED);
	sim.s->signals.queue->places[0].state = PLACE_WRITING;
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), 0);
	ck_assert_uint_eq(stats_now().failed[INCSTACK_FAILED_LEFT], 1);
	ck_assert_uint_eq(stats_now().biased, 1);
	sim.s->signals.queue->in_hand = 1;
	sim.s->signals.requests++;
	ck_assert_int_eq(ask(ENDING, 3), INCSTACK_QUEUED);
	ck_assert_int_eq(incstack_stack_forget(sim.s), 0);
	ck_assert_uint_eq(stats_now().failed[INCSTACK_FAILED_LEFT], 2);
	ck_assert_uint_eq(stats_now().failed[INCSTACK_FAILED_DROPPED], 1);
	ck_assert_uint_eq(stats_now().pending, 0);
	close_five();
}
END_TEST

/* A sample at a poll drains first. */
START_TEST(sample_at_a_poll)
{
	struct incstack_tree *tree;
	open_five(4);
	const struct incstack_top top = poll_top();
	ck_assert_int_eq(ask(PROMISED, 1), INCSTACK_QUEUED);
	ck_assert_int_eq(incstack_stack_sample_at_poll(sim.s, 2, 1, &top), 0);
	ck_assert_int_eq(incstack_stack_retrieve(sim.s, &tree), 0);
	ck_assert_uint_eq(tree->count, 2);
	ck_assert_uint_eq(tree->traces->id, 1);
	ck_assert_int_eq(trace_taken(tree->traces), TAKEN_FROM_QUEUE);
	ck_assert_uint_eq(tree->traces->next->id, 2);
	ck_assert_int_eq(trace_taken(tree->traces->next), TAKEN_DIRECTLY);
	ck_assert_ptr_nonnull(tree->traces->next->old);
	incstack_tree_release(tree);
	close_five();
}
END_TEST

/* The slot of the interrupted frame is not known, and the frame is still there. */
START_TEST(without_a_slot)
{
	struct incstack_tree *tree;
	open_five(4);
	const struct incstack_top top = poll_top();
	ck_assert_int_eq(ask(ENDING, 1), INCSTACK_QUEUED);
	sim.s->signals.queue->places[0].what.top.slot = 0;
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), 0);
	ck_assert_int_eq(incstack_stack_retrieve(sim.s, &tree), 0);
	ck_assert_int_eq(trace_taken(tree->traces), TAKEN_BIASED);
	ck_assert_uint_eq(tree->traces->top->address, sim_top()[-1].sp);
	incstack_tree_release(tree);
	close_five();
}
END_TEST

/* Leaves the top frame; the caller is at another position then. */
static struct incstack_top poll_in_caller(void)
{
	const struct sim_frame *f = &sim_top()[-1];
	sim.depth--;
	return (struct incstack_top){.pc = f->pc + 1, .sp = f->sp, .fp = f->fp};
}

/* The interrupted frame has returned. Its caller stays, and is shown at the call. */
START_TEST(caller_stays)
{
	struct incstack_tree *tree;
	struct queued e;
	open_five(4);
	const struct sim_frame f = *sim_top();
	ck_assert_int_eq(ask(RETURNING, 1), INCSTACK_QUEUED);
	e = element(0);
	ck_assert_uint_eq(e.caller, f.resume);
	const struct incstack_top top = poll_in_caller();
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), 0);
	ck_assert_int_eq(incstack_stack_retrieve(sim.s, &tree), 0);
	const struct incstack_frame_object *o = tree->traces->top;
	ck_assert_int_eq(trace_taken(tree->traces), TAKEN_FROM_QUEUE);
	ck_assert_uint_eq(o->address, f.sp);
	ck_assert_int_eq(o->position, (int32_t)(f.pc % SIM_CALLS));
	while (o->flags & INCSTACK_OBJECT_VIRTUAL || o->address == f.sp)
		o = o->parent;
	ck_assert_uint_eq(o->address, sim_top()->sp);
	ck_assert_int_eq(o->position, (int32_t)(f.resume % SIM_CALLS));
	ck_assert_uint_eq(stats_now().from_queue, 1);
	incstack_tree_release(tree);
	close_five();
}
END_TEST

/* No frame begins behind the slot when the queue is drained. */
START_TEST(caller_is_not_found)
{
	open_five(4);
	ck_assert_int_eq(ask(RETURNING, 1), INCSTACK_QUEUED);
	const struct incstack_top top = poll_in_caller();
	sim.s->signals.queue->places[0].what.top.slot -= sizeof(uintptr_t);
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), 0);
	ck_assert_uint_eq(stats_now().biased, 1);
	close_five();
}
END_TEST

/* The caller keeps its position in its frame, so the return address does not tell it. */
START_TEST(caller_has_its_position_inside)
{
	open_five(4);
	do
		sim_call();
	while (!sim_position_inside(sim_top()->function));
	sim_call();
	ck_assert_int_eq(ask(ENDING, 1), INCSTACK_QUEUED);
	struct queued *e = &sim.s->signals.queue->places[0].what;
	e->top.flags |= INCSTACK_TOP_CALLER_STAYS;
	e->caller = sim_top()->resume;
	const struct incstack_top top = poll_in_caller();
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), 0);
	ck_assert_uint_eq(stats_now().biased, 1);
	close_five();
}
END_TEST

/* The interrupted frame was called from elsewhere meanwhile. */
START_TEST(equal_tops_with_other_callers)
{
	open_five(4);
	uintptr_t *slot = (uintptr_t *)sim_top()->slot;
	ck_assert_int_eq(ask(RETURNING, 1), INCSTACK_QUEUED);
	++*slot;
	ck_assert_int_eq(ask(RETURNING, 2), INCSTACK_QUEUED);
	ck_assert_int_eq(ask(RETURNING, 3), INCSTACK_QUEUED);
	--*slot;
	ck_assert_uint_eq(incstack__queue_pending(sim.s), 2);
	ck_assert_uint_eq(stats_now().merged, 1);
	close_five();
}
END_TEST

/* Where the return address cannot be read, there is no promise. */
START_TEST(slot_is_no_word_of_the_stack)
{
	const uintptr_t high = (uintptr_t)(sim.words + SIM_WORDS);
	struct queued e;
	open_five(4);
	const uintptr_t slot = sim_top()->slot;
	const uintptr_t wrong[] = {high, (uintptr_t)sim.words - 8, slot + 1, 0};
	for (int i = 0; i < 4; i++) {
		sim_top()->slot = wrong[i];
		ck_assert_int_eq(ask(RETURNING, 1), INCSTACK_QUEUED);
		e = element(-1);
		ck_assert_uint_eq(e.caller, 0);
		ck_assert_uint_eq(e.top.flags & INCSTACK_TOP_CALLER_STAYS, 0);
	}
	sim_top()->slot = slot;
	close_five();
}
END_TEST

/* A frame was moved, or frames were popped. */
START_TEST(promise_is_withdrawn)
{
	struct queued e;
	open_five(4);
	const uintptr_t slot = sim.frames[2].slot;
	ck_assert_int_eq(ask(RETURNING, 1), INCSTACK_QUEUED);
	ck_assert_int_eq(incstack_stack_frame_moved(sim.s, slot, slot), 0);
	ck_assert_int_eq(ask(RETURNING, 2), INCSTACK_QUEUED);
	ck_assert_int_eq(incstack_stack_unwinding_to(sim.s, sim.frames[2].sp), 0);
	for (int i = 0; i < 2; i++) {
		e = element(i);
		ck_assert_uint_eq(e.top.flags & INCSTACK_TOP_CALLER_STAYS, 0);
	}
	close_five();
}
END_TEST

/* All frames of that time are gone. */
START_TEST(nothing_left)
{
	open_five(4);
	const struct incstack_top top = poll_top();
	ck_assert_int_eq(ask(ENDING, 1), INCSTACK_QUEUED);
	sim.s->signals.queue->places[0].what.top.slot = (uintptr_t)(sim.words + SIM_WORDS);
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), 0);
	ck_assert_uint_eq(stats_now().failed[INCSTACK_FAILED_GONE], 1);
	close_five();
}
END_TEST

/* Without room the requests stay in the queue. As there was a poll, the promise is void. */
START_TEST(no_room)
{
	struct incstack_tree *tree;
	open_five_with(
		(struct incstack_options){.distance = 1, .stack_bytes = 4096, .chunk_bytes = 4096},
		4);
	const struct incstack_top top = poll_top();
	while (incstack_stack_sample(sim.s, 0, 1, &top) == 0)
		;
	ck_assert_int_eq(ask(DESCRIBED, 1), INCSTACK_QUEUED);
	ck_assert_int_eq(ask(PROMISED, 2), INCSTACK_QUEUED);
	ck_assert_uint_eq(sim_stats().lost_limit, 1); /* not that of the handler */
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), INCSTACK_ELIMIT);
	ck_assert_uint_eq(incstack__queue_pending(sim.s), 2);
	ck_assert_int_eq(incstack_stack_retrieve(sim.s, &tree), 0);
	incstack_tree_release(tree);
	ck_assert_int_eq(incstack_stack_queue_resize(sim.s, 2), 0);
	sim.rt->options.stack_bytes = 1 << 20;
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), 0);
	ck_assert_uint_eq(stats_now().biased, 2);
	close_five();
}
END_TEST

static int result_elsewhere;

static void *elsewhere(void *nothing)
{
	(void)nothing;
	result_elsewhere = ask(DESCRIBED, 1);
	return NULL;
}

START_TEST(another_owner)
{
	pthread_t thread;
	open_five(4);
	ck_assert_int_eq(pthread_create(&thread, NULL, elsewhere, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(result_elsewhere, INCSTACK_ETHREAD);
	ck_assert_uint_eq(stats_now().failed[INCSTACK_FAILED_OWNER], 1);
	close_five();
}
END_TEST

/* A wrong top is refused when a walk would begin at it. The request stays, and its trace is right. */
START_TEST(wrong_top_of_a_poll)
{
	open_five(4);
	const struct incstack_top top = poll_top();
	const struct incstack_top wrong[] = {
		{.pc = 0, .sp = top.sp, .fp = top.fp},
		{.pc = top.pc, .sp = top.sp + 1, .fp = top.fp},
		{.pc = top.pc, .sp = top.sp, .fp = top.fp, .flags = INCSTACK_TOP_DECODE_NOW},
	};
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &wrong[0]), 0);
	ck_assert_int_eq(ask(PROMISED, 1), INCSTACK_QUEUED);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &wrong[i]), INCSTACK_EINVAL);
	ck_assert_uint_eq(incstack__queue_pending(sim.s), 1);
	ck_assert_uint_eq(stats_now().drains, 0);
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), 0);
	ck_assert_uint_eq(stats_now().from_queue, 1);
	close_five();
}
END_TEST

START_TEST(bad_input)
{
	struct queued e;
	open_five(4);
	struct incstack_top top = poll_top();
	ck_assert_int_eq(incstack_stack_sample_signal(NULL, 1, 1, &e), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_sample_signal(sim.s, 1, 1, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_queue_resize(NULL, 1), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_queue_drain(NULL, &top), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, NULL), INCSTACK_EINVAL);
	top.flags = INCSTACK_TOP_INTERRUPTED;
	ck_assert_int_eq(incstack_stack_queue_drain(sim.s, &top), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_signal_stats(NULL, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_signal_stats(sim.s, NULL), INCSTACK_EINVAL);
	sim.rt->embedder.signals.interrupted = NULL;
	ck_assert_int_eq(incstack_stack_sample_signal(sim.s, 1, 1, &e), INCSTACK_EINVAL);
	ck_assert_uint_eq(stats_now().requests, 0);
	close_five();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("signal queue");
	TCase *tc = tcase_create("all");
	tcase_add_test(tc, without_a_queue);
	tcase_add_test(tc, elements);
	tcase_add_test(tc, equal_tops_after_a_sample);
	tcase_add_test(tc, resized);
	tcase_add_test(tc, during_a_drain);
	tcase_add_test(tc, left_by_jumps);
	tcase_add_test(tc, sample_at_a_poll);
	tcase_add_test(tc, without_a_slot);
	tcase_add_test(tc, caller_stays);
	tcase_add_test(tc, caller_is_not_found);
	tcase_add_test(tc, caller_has_its_position_inside);
	tcase_add_test(tc, equal_tops_with_other_callers);
	tcase_add_test(tc, slot_is_no_word_of_the_stack);
	tcase_add_test(tc, promise_is_withdrawn);
	tcase_add_test(tc, nothing_left);
	tcase_add_test(tc, no_room);
	tcase_add_test(tc, another_owner);
	tcase_add_test(tc, wrong_top_of_a_poll);
	tcase_add_test(tc, bad_input);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
