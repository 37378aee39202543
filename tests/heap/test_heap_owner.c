/* SPDX-License-Identifier: MIT
 *
 * Tests frames on the heap with threads: stacks that move, owners that are checked, triggers, trees that
 * another thread releases, what stacks cost that are never sampled.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "by_hand.h"

static void hand_open_checked(void)
{
	struct incstack_heap_options options = hand_options();
	options.flags = INCSTACK_HEAP_CHECK_OWNER;
	options.distance = 1;
	hand_open_with(options);
	hand_calls(5);
}

static int on_another_thread(void *function(void *))
{
	pthread_t thread;
	void *result;
	ck_assert_int_eq(pthread_create(&thread, NULL, function, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	return (int)(intptr_t)result;
}

static void *sample_there(void *argument)
{
	(void)argument;
	return (void *)(intptr_t)incstack_heap_stack_sample(hand.stack, hand.top, 2, 1);
}

static void *adopt_and_sample(void *argument)
{
	int error = incstack_heap_stack_adopt(hand.stack);
	return error ? (void *)(intptr_t)error : sample_there(argument);
}

static const struct incstack_heap_tree *retrieved;

static void *release_there(void *argument)
{
	(void)argument;
	return (void *)(intptr_t)incstack_heap_tree_release(retrieved, hand.stack);
}

START_TEST(an_owner_is_checked_if_that_is_wanted)
{
	hand_open_checked();
	hand_sample(1);
	ck_assert_int_eq(on_another_thread(sample_there), INCSTACK_ETHREAD);
	ck_assert_int_eq(on_another_thread(adopt_and_sample), 0);
	ck_assert_int_eq(incstack_heap_stack_sample(hand.stack, hand.top, 3, 1), INCSTACK_ETHREAD);
	ck_assert_int_eq(incstack_heap_stack_adopt(hand.stack), 0);
	hand_sample(4);
	const struct incstack_heap_tree *tree = hand_retrieve();
	ck_assert_uint_eq(tree->count, 3);
	ck_assert_ptr_eq(tree->traces->top->parent, tree->traces->next->top->parent);
	retrieved = tree;
	ck_assert_int_eq(on_another_thread(release_there), INCSTACK_ETHREAD);
	ck_assert_int_eq((int)(intptr_t)release_there(NULL), 0);
	hand_close();
}
END_TEST

START_TEST(without_a_check_a_stack_moves_freely)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(5);
	hand_sample(1);
	ck_assert_int_eq(on_another_thread(sample_there), 0);
	incstack_heap_tree_release(hand_retrieve(), NULL);
	hand_close();
}
END_TEST

/* Two threads use one stack at once, and adopt it from each other. */
enum { ROUNDS = 20000 };
static atomic_int taken, refused;

static void *use_it(void *argument)
{
	const struct incstack_heap_object *o;
	for (int i = 0; i < ROUNDS; i++) {
		int error = incstack_heap_stack_trace(hand.stack, hand.top, &o);
		if (error)
			HAND_REQUIRE(error == INCSTACK_ETHREAD || error == INCSTACK_EBUSY);
		atomic_fetch_add(error ? &refused : &taken, 1);
		if (i % 16 == 0 || error == INCSTACK_ETHREAD) {
			error = incstack_heap_stack_adopt(hand.stack);
			HAND_REQUIRE(error == 0 || error == INCSTACK_EBUSY);
		}
	}
	return argument;
}

START_TEST(one_stack_is_used_from_two_places)
{
	pthread_t threads[2];
	hand_open_checked();
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, use_it, NULL), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	ck_assert_int_eq(taken + refused, 2 * ROUNDS);
	ck_assert_int_eq(incstack_heap_stack_adopt(hand.stack), 0);
	ck_assert_uint_eq(hand_stats().samples, (unsigned)taken);
	ck_assert_uint_eq(hand_length(hand_trace()), 5);
	hand_close();
}
END_TEST

/* One thread samples, another one reads and releases the trees. Both block while they wait: a thread that
 * yields waits for a whole time slice of each busy process on the machine, in each round. */
static const struct incstack_heap_tree *mailbox;
static sem_t mailbox_empty, mailbox_full;

static void *release_all(void *argument)
{
	for (unsigned got = 0; got < ROUNDS; got++) {
		HAND_REQUIRE(sem_wait(&mailbox_full) == 0);
		const struct incstack_heap_tree *tree = mailbox;
		HAND_REQUIRE(sem_post(&mailbox_empty) == 0);
		HAND_REQUIRE(hand_length(tree->traces->top) == 5);
		incstack_heap_tree_release(tree, NULL);
	}
	return argument;
}

START_TEST(another_thread_releases_the_trees)
{
	pthread_t thread;
	hand_open((uint32_t)_i, 0);
	hand_calls(5);
	ck_assert_int_eq(sem_init(&mailbox_empty, 0, 1), 0);
	ck_assert_int_eq(sem_init(&mailbox_full, 0, 0), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, release_all, NULL), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		hand_sample(i);
		const struct incstack_heap_tree *tree = hand_retrieve();
		if (i % 3 == 0) { /* one tree more, which this thread releases */
			hand_sample(i);
			HAND_REQUIRE(incstack_heap_tree_release(hand_retrieve(), hand.stack) == 0);
		}
		ck_assert_int_eq(sem_wait(&mailbox_empty), 0);
		mailbox = tree;
		ck_assert_int_eq(sem_post(&mailbox_full), 0);
	}
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(sem_destroy(&mailbox_empty), 0);
	ck_assert_int_eq(sem_destroy(&mailbox_full), 0);
	hand_close();
}
END_TEST

START_TEST(a_stack_that_is_never_sampled_is_small)
{
	enum { STACKS = 100000 };
	struct incstack_heap_stack *idle;
	hand_open(INCSTACK_HEAP_BARRIER, 0);
	const size_t before = hand.allocated;
	for (int i = 0; i < STACKS; i++)
		HAND_REQUIRE(incstack_heap_stack_create(hand.heap, &hand.stack, &idle) == 0);
	ck_assert_uint_le((hand.allocated - before) / STACKS, 512);
	hand_close();
}
END_TEST

/* A stack whose functions have returned gives its memory back with the last tree. */
START_TEST(a_stack_without_frames_becomes_small_again)
{
	hand_open(INCSTACK_HEAP_BARRIER, 0);
	const size_t before = hand.allocated;
	hand_calls(3);
	hand_sample(1);
	while (hand.top)
		ck_assert_int_eq(hand_return(), 0);
	incstack_heap_tree_release(hand_retrieve(), NULL);
	ck_assert_uint_eq(hand.allocated, before);
	hand_close();
}
END_TEST

START_TEST(each_thread_draws_one_ticket_of_a_request)
{
	struct incstack_heap_trigger trigger = {0};
	uint32_t one = 0, two = 0, three = 0;
	ck_assert_uint_eq(trigger.word & 0xffff, 0);
	ck_assert_int_eq(incstack_heap_trigger_draw(&trigger, &one), 0);
	for (unsigned request = 0; request < 200000; request++) {
		HAND_REQUIRE(incstack_heap_trigger_request(&trigger, 2) == (request != 0));
		HAND_REQUIRE((trigger.word & 0xffff) == 2);
		HAND_REQUIRE(incstack_heap_trigger_draw(&trigger, &one) == 1);
		HAND_REQUIRE(incstack_heap_trigger_draw(&trigger, &one) == 0);
		if (request % 2)
			continue; /* the other ticket is void at the next request */
		HAND_REQUIRE(incstack_heap_trigger_draw(&trigger, &two) == 1);
		HAND_REQUIRE(incstack_heap_trigger_draw(&trigger, &three) == 0);
		HAND_REQUIRE((trigger.word & 0xffff) == 0);
		HAND_REQUIRE(incstack_heap_trigger_request(&trigger, 1) == 0);
		request++;
	}
	incstack_heap_trigger_request(&trigger, UINT32_MAX);
	ck_assert_uint_eq(incstack_heap_trigger_request(&trigger, 0), 0xffff);
	ck_assert_uint_eq(trigger.word & 0xffff, 0);
}
END_TEST

/* Many threads poll, and each request gives as many tickets as it has. */
static struct incstack_heap_trigger shared;
static atomic_int drawn;

static void *poll_it(void *argument)
{
	uint32_t mine = 0;
	for (int i = 0; i < ROUNDS * 10; i++)
		if (incstack_heap_trigger_draw(&shared, &mine))
			atomic_fetch_add(&drawn, 1);
	return argument;
}

START_TEST(tickets_are_drawn_once)
{
	pthread_t threads[4];
	unsigned wanted = 0, left = 0;
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, poll_it, NULL), 0);
	for (int i = 0; i < 5000; i++, wanted += 3)
		left += incstack_heap_trigger_request(&shared, 3);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	left += incstack_heap_trigger_request(&shared, 0);
	ck_assert_int_eq((unsigned)drawn, wanted - left);
}
END_TEST

static TCase *tests(void)
{
	TCase *c = tcase_create("owners");
	tcase_add_test(c, an_owner_is_checked_if_that_is_wanted);
	tcase_add_test(c, without_a_check_a_stack_moves_freely);
	tcase_add_test(c, one_stack_is_used_from_two_places);
	tcase_add_loop_test(c, another_thread_releases_the_trees, 0, INCSTACK_HEAP_FULL + 1);
	tcase_add_test(c, a_stack_that_is_never_sampled_is_small);
	tcase_add_test(c, a_stack_without_frames_becomes_small_again);
	tcase_add_test(c, each_thread_draws_one_ticket_of_a_request);
	tcase_add_test(c, tickets_are_drawn_once);
	return c;
}

int main(void)
{
	Suite *suite = suite_create("owners of frames on the heap");
	suite_add_tcase(suite, tests());
	return run_suite(suite);
}
