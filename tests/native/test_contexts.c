/* SPDX-License-Identifier: MIT
 *
 * Tests contexts of makecontext, each on a stack with its own barriers: above and below the
 * thread's stack, moved between threads, suspended for ever, and started again.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "../unit/run_suite.h"
#include "checked.h"

enum { STACK_BYTES = 256 << 10, FIBERS = 6, TURNS = 40, DEPTH = 9 };

struct fiber {
	ucontext_t context;
	ucontext_t *back; /* to whom it yields */
	char *memory;
	struct incstack_stack *stack;
	bool ended;
};

static struct fiber fibers[FIBERS];
static __thread struct incstack_stack *own_stack;

/* In another function than the switch: the compiler may keep a thread's addresses. */
static OPAQUE void sample_thread(void)
{
	ck_assert_int_eq(sample_checked(own_stack), 0);
}

static OPAQUE void yield_at(struct fiber *fiber, int depth)
{
	if (depth > 0)
		yield_at(fiber, depth - 1);
	ck_assert_int_eq(sample_checked(fiber->stack), 0);
	if (depth == 2)
		ck_assert_int_eq(swapcontext(&fiber->context, fiber->back), 0);
	ck_assert_int_eq(sample_checked(fiber->stack), 0);
	__asm__ volatile("" ::: "memory");
}

static void fiber_main(int number)
{
	struct fiber *fiber = &fibers[number];

	for (int turn = 0; turn < TURNS; turn++)
		yield_at(fiber, 3 + (turn + number) % DEPTH);
	fiber->ended = true;
	ck_assert_int_eq(swapcontext(&fiber->context, fiber->back), 0);
}

/* A state for the memory of a fiber, or the old one for what begins there anew. */
static void make_stack(struct fiber *fiber)
{
	const uintptr_t low = (uintptr_t)fiber->memory;

	if (fiber->stack) {
		ck_assert_int_eq(incstack_stack_set_owner(fiber->stack), 0);
		ck_assert_int_eq(incstack_stack_forget(fiber->stack), 0);
	} else {
		ck_assert_int_eq(incstack_stack_create(checked_runtime, low, low + STACK_BYTES,
						       &fiber->stack),
				 0);
	}
	ck_assert_int_eq(incstack_stack_reserve(fiber->stack, 1 << 20), 0);
}

static void make_fiber(int number)
{
	struct fiber *fiber = &fibers[number];

	if (!fiber->memory)
		fiber->memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(fiber->memory != MAP_FAILED);
	fiber->ended = false;
	ck_assert_int_eq(getcontext(&fiber->context), 0);
	fiber->context.uc_stack.ss_sp = fiber->memory;
	fiber->context.uc_stack.ss_size = STACK_BYTES;
	fiber->context.uc_link = NULL;
	makecontext(&fiber->context, (void (*)(void))fiber_main, 1, number);
	make_stack(fiber);
}

static void end_thread(void)
{
	ck_assert_uint_eq(checked_stats(own_stack).stale, 0);
	ck_assert_uint_eq(compare_all(own_stack), 0);
	incstack_stack_destroy(own_stack);
}

static void abandon(struct fiber *fiber)
{
	incstack_stack_abandon(fiber->stack);
	fiber->stack = NULL;
}

static OPAQUE void resume(struct fiber *fiber)
{
	ucontext_t here;

	fiber->back = &here;
	sample_thread();
	ck_assert_int_eq(incstack_stack_set_owner(fiber->stack), 0);
	ck_assert_int_eq(swapcontext(&here, &fiber->context), 0);
	sample_thread();
}

static OPAQUE void resume_at(struct fiber *fiber, int depth)
{
	if (depth == 0)
		resume(fiber);
	else
		resume_at(fiber, depth - 1);
	__asm__ volatile("" ::: "memory");
}

static void end_fiber(struct fiber *fiber)
{
	struct incstack_stats stats = checked_stats(fiber->stack);

	ck_assert_uint_gt(stats.returns, TURNS);
	ck_assert_uint_eq(stats.stale, 0);
	ck_assert_int_eq(incstack_stack_set_owner(fiber->stack), 0);
	ck_assert_uint_eq(compare_all(fiber->stack), 0);
	abandon(fiber);
}

static void free_fibers(void)
{
	for (int i = 0; i < FIBERS; i++)
		munmap(fibers[i].memory, STACK_BYTES);
	checked_close(NULL);
}

static void *run_all(void *argument)
{
	own_stack = checked_thread();
	for (int i = 0; i < FIBERS; i++)
		make_fiber(i);
	for (int turn = 0; !fibers[FIBERS - 1].ended; turn++)
		for (int i = 0; i < FIBERS; i++)
			if (!fibers[i].ended)
				resume_at(&fibers[i], (turn + i) % 5);
	for (int i = 0; i < FIBERS; i++)
		end_fiber(&fibers[i]);
	end_thread();
	return argument;
}

START_TEST(contexts_below)
{
	checked_open(INCSTACK_MODE_PATCH, (unsigned)_i + 1);
	run_all(NULL);
	ck_assert(fibers[0].memory < (char *)__builtin_frame_address(0));
	free_fibers();
}
END_TEST

START_TEST(contexts_above)
{
	pthread_attr_t attributes;
	pthread_t thread;
	char *low = mmap((void *)UINT64_C(0x10000000), STACK_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	checked_open(INCSTACK_MODE_PATCH, (unsigned)_i + 1);
	ck_assert(low != MAP_FAILED);
	ck_assert_int_eq(pthread_attr_init(&attributes), 0);
	ck_assert_int_eq(pthread_attr_setstack(&attributes, low, STACK_BYTES), 0);
	ck_assert_int_eq(pthread_create(&thread, &attributes, run_all, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert(fibers[0].memory > low);
	free_fibers();
}
END_TEST

/* Each turn of a fiber on another thread: they pass it on in a ring. */
enum { THREADS = 3 };

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static int turn_count;

static void *migrating(void *argument)
{
	const int me = (int)(intptr_t)argument;
	struct fiber *fiber = &fibers[0];

	own_stack = checked_thread();
	pthread_mutex_lock(&turn_lock);
	for (;;) {
		while (turn_count % THREADS != me && !fiber->ended)
			pthread_cond_wait(&turn_changed, &turn_lock);
		if (fiber->ended)
			break;
		resume_at(fiber, turn_count % 4);
		turn_count++;
		pthread_cond_broadcast(&turn_changed);
	}
	pthread_mutex_unlock(&turn_lock);
	end_thread();
	return NULL;
}

START_TEST(contexts_migrate)
{
	pthread_t threads[THREADS];

	checked_open(INCSTACK_MODE_PATCH, (unsigned)_i + 1);
	for (int i = 0; i < FIBERS; i++)
		make_fiber(i);
	for (intptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, migrating, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	ck_assert_int_gt(turn_count, TURNS);
	end_fiber(&fibers[0]);
	for (int i = 1; i < FIBERS; i++)
		abandon(&fibers[i]);
	free_fibers();
}
END_TEST

/* Suspended with barriers on its stack, and never resumed: the next fiber begins in its memory, or
 * the memory is freed. */
START_TEST(contexts_destroyed_while_suspended)
{
	checked_open(INCSTACK_MODE_PATCH, (unsigned)_i + 1);
	own_stack = checked_thread();
	for (int i = 0; i < FIBERS; i++) {
		make_fiber(i);
		resume_at(&fibers[i], i);
		memset(fibers[i].memory, 0xff, STACK_BYTES);
		make_fiber(i);
		ck_assert_uint_gt(compare_all(fibers[i].stack), 0);
		resume_at(&fibers[i], i);
		ck_assert_uint_eq(compare_all(fibers[i].stack), 0);
		resume_at(&fibers[i], i);
		compare_all(fibers[i].stack);
		memset(fibers[i].memory, 0xff, STACK_BYTES);
		abandon(&fibers[i]);
	}
	end_thread();
	free_fibers();
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("contexts");
	TCase *tc = tcase_create("contexts");

	tcase_add_loop_test(tc, contexts_below, -1, 4);
	tcase_add_loop_test(tc, contexts_above, -1, 4);
	tcase_add_loop_test(tc, contexts_migrate, -1, 4);
	tcase_add_loop_test(tc, contexts_destroyed_while_suspended, -1, 4);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
