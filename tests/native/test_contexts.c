/* SPDX-License-Identifier: MIT
 *
 * Contexts of makecontext, each on a stack with barriers of its own: above and below
 * the thread's stack, moving between threads, left suspended for ever, begun anew.
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

static struct incstack_native_stacks *stacks;
static struct fiber fibers[FIBERS];
static __thread struct incstack_stack *own_stack;

/* In another function than the switch: the compiler may keep a thread's addresses. */
static OPAQUE void sample_here(void)
{
	struct incstack_stack *stack = NULL;
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);

	if (incstack_native_stacks_find(stacks, sp, &stack) < 0)
		stack = own_stack;
	ck_assert_int_eq(sample_checked(stack), 0);
}

static OPAQUE void switch_to(ucontext_t *from, ucontext_t *to)
{
	struct incstack_stack *stack = NULL;

	ck_assert_int_eq(incstack_native_context_switched(stacks, to, &stack), 0);
	ck_assert_int_eq(swapcontext(from, to), 0);
}

static OPAQUE void yield_at(struct fiber *fiber, int depth)
{
	if (depth > 0)
		yield_at(fiber, depth - 1);
	sample_here();
	if (depth == 2)
		switch_to(&fiber->context, fiber->back);
	sample_here();
	__asm__ volatile("" ::: "memory");
}

static void fiber_main(int number)
{
	struct fiber *fiber = &fibers[number];

	for (int turn = 0; turn < TURNS; turn++)
		yield_at(fiber, 3 + (turn + number) % DEPTH);
	fiber->ended = true;
	switch_to(&fiber->context, fiber->back);
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
	ck_assert_int_eq(incstack_native_context_made(stacks, &fiber->context, &fiber->stack), 0);
	ck_assert_int_eq(incstack_stack_reserve(fiber->stack, 1 << 20), 0);
}

static void begin_thread(void)
{
	uintptr_t low;
	uintptr_t high;

	own_stack = checked_thread();
	ck_assert_int_eq(incstack_native_stack_range(&low, &high), 0);
	ck_assert_int_eq(incstack_native_stacks_add(stacks, own_stack, low, high), 0);
}

static void end_thread(void)
{
	ck_assert_uint_eq(checked_stats(own_stack).stale, 0);
	ck_assert_uint_eq(compare_all(own_stack), 0);
	ck_assert_int_eq(incstack_native_stacks_remove(stacks, own_stack), 0);
	ck_assert_int_eq(incstack_stack_destroy(own_stack), 0);
}

static OPAQUE void resume(struct fiber *fiber)
{
	ucontext_t here;

	fiber->back = &here;
	sample_here();
	switch_to(&here, &fiber->context);
	sample_here();
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
	ck_assert_int_eq(incstack_stack_own(fiber->stack), 0);
	ck_assert_uint_eq(compare_all(fiber->stack), 0);
	ck_assert_int_eq(incstack_native_context_destroyed(stacks, &fiber->context), 0);
}

static void free_fibers(void)
{
	for (int i = 0; i < FIBERS; i++)
		munmap(fibers[i].memory, STACK_BYTES);
	ck_assert_int_eq(incstack_native_stacks_destroy(stacks), 0);
	checked_close(NULL);
}

static void open_all(int distance)
{
	checked_open(INCSTACK_MODE_PATCH, distance);
	ck_assert_int_eq(incstack_native_stacks_create(checked_runtime, &stacks), 0);
}

static void *run_all(void *argument)
{
	begin_thread();
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
	open_all(_i);
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

	open_all(_i);
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

	begin_thread();
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

	open_all(_i);
	for (int i = 0; i < FIBERS; i++)
		make_fiber(i);
	for (intptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, migrating, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	ck_assert_int_gt(turn_count, TURNS);
	end_fiber(&fibers[0]);
	for (int i = 1; i < FIBERS; i++)
		ck_assert_int_eq(incstack_native_context_destroyed(stacks, &fibers[i].context), 0);
	free_fibers();
}
END_TEST

/* Suspended with barriers on its stack, and never resumed: the next one begins in
 * its memory, or the memory goes. */
START_TEST(contexts_destroyed_while_suspended)
{
	struct incstack_stack *before;

	open_all(_i);
	begin_thread();
	for (int i = 0; i < FIBERS; i++) {
		make_fiber(i);
		resume_at(&fibers[i], i);
		before = fibers[i].stack;
		memset(fibers[i].memory, 0xff, STACK_BYTES);
		make_fiber(i);
		ck_assert_ptr_eq(before, fibers[i].stack);
		ck_assert_uint_gt(compare_all(fibers[i].stack), 0);
		resume_at(&fibers[i], i);
		ck_assert_uint_eq(compare_all(fibers[i].stack), 0);
		resume_at(&fibers[i], i);
		compare_all(fibers[i].stack);
		memset(fibers[i].memory, 0xff, STACK_BYTES);
		ck_assert_int_eq(incstack_native_context_destroyed(stacks, &fibers[i].context), 0);
		ck_assert_int_eq(incstack_native_context_destroyed(stacks, &fibers[i].context),
				 INCSTACK_ERANGE);
	}
	end_thread();
	free_fibers();
}
END_TEST

START_TEST(ranges)
{
	struct incstack_stack *found = NULL;
	struct incstack_stack *outer;
	char memory[64];
	struct incstack_stack *inner = (struct incstack_stack *)memory;

	open_all(0);
	outer = checked_thread();
	ck_assert_int_eq(incstack_native_stacks_add(stacks, inner, 0x2000, 0x3000), 0);
	ck_assert_int_eq(incstack_native_stacks_add(stacks, outer, 0x1000, 0x5000), 0);
	ck_assert_int_eq(incstack_native_stacks_add(stacks, inner, 0x4800, 0x5800), INCSTACK_EBUSY);
	ck_assert_int_eq(incstack_native_stacks_add(stacks, inner, 0x5000, 0x5000),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_native_stacks_find(stacks, 0x2fff, &found), 0);
	ck_assert_ptr_eq(found, inner);
	ck_assert_int_eq(incstack_native_stacks_find(stacks, 0x3000, &found), 0);
	ck_assert_ptr_eq(found, outer);
	ck_assert_int_eq(incstack_native_stacks_find(stacks, 0x5000, &found), INCSTACK_ERANGE);
	ck_assert_int_eq(incstack_native_stacks_find(stacks, 0xfff, &found), INCSTACK_ERANGE);
	ck_assert_int_eq(incstack_native_stacks_destroy(stacks), INCSTACK_EBUSY);
	ck_assert_int_eq(incstack_native_stacks_remove(stacks, outer), 0);
	ck_assert_int_eq(incstack_native_stacks_remove(stacks, outer), INCSTACK_ERANGE);
	ck_assert_int_eq(incstack_native_stacks_remove(stacks, inner), 0);
	ck_assert_int_eq(incstack_native_stacks_destroy(stacks), 0);
	ck_assert_int_eq(incstack_native_stacks_create(NULL, &stacks), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_native_context_made(NULL, NULL, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_native_context_switched(NULL, NULL, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_native_context_destroyed(NULL, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_native_code_unloaded(NULL), INCSTACK_EINVAL);
	checked_close(outer);
}
END_TEST

/* Ranges that lie in each other may have a bound in common. */
START_TEST(ranges_with_one_bound)
{
	static const uintptr_t inner[][2] = {{0x3000, 0x5000}, {0x1000, 0x3000}, {0x1000, 0x5000}};
	static const uintptr_t crossing[][2] = {{0x0800, 0x4800},
						{0x2000, 0x4000},
						{0x4800, 0x5800},
						{0x0800, 0x1008},
						{0x4ff8, 0x6000}};
	struct incstack_stack *found = NULL;
	char memory[5];

	open_all(0);
	ck_assert_int_eq(incstack_native_stacks_add(stacks, (void *)memory, 0x1000, 0x5000), 0);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(incstack_native_stacks_add(stacks, (void *)&memory[i + 1],
							    inner[i][0], inner[i][1]),
				 0);
	ck_assert_int_eq(incstack_native_stacks_add(stacks, (void *)&memory[4], 0x0800, 0x5000), 0);
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_eq(incstack_native_stacks_add(stacks, (void *)memory, crossing[i][0],
							    crossing[i][1]),
				 INCSTACK_EBUSY);
	ck_assert_int_eq(incstack_native_stacks_find(stacks, 0x1000, &found), 0);
	ck_assert_ptr_eq(found, &memory[2]);
	ck_assert_int_eq(incstack_native_stacks_find(stacks, 0x4fff, &found), 0);
	ck_assert_ptr_eq(found, &memory[1]);
	ck_assert_int_eq(incstack_native_stacks_find(stacks, 0x0fff, &found), 0);
	ck_assert_ptr_eq(found, &memory[4]);
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_eq(incstack_native_stacks_remove(stacks, (void *)&memory[i]), 0);
	ck_assert_int_eq(incstack_native_stacks_destroy(stacks), 0);
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
	tcase_add_test(tc, ranges);
	tcase_add_test(tc, ranges_with_one_bound);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
