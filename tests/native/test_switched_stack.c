/* SPDX-License-Identifier: MIT
 *
 * Tests operations of a thread on its own stack while it runs on another one. It has left frames by a
 * jump that nobody announced, so what is known of its stack may be out of date. Only a thread that
 * switches by itself is meant: one that works on the stack of another thread has to trust it.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "trace/shared.h"
#include "../unit/run_suite.h"
#include "traced.h"

enum { STACK_BYTES = 256 << 10, LEFT = 40 };

static void (*operation)(void);
static ucontext_t here, there;

__attribute__((noinline)) static void sample_and_jump(int frames, void **before)
{
	traced_sample();
	if (frames > 0)
		sample_and_jump(frames - 1, before);
	else
		__builtin_longjmp(before, 1);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void leave_frames(void)
{
	void *before[5];

	if (__builtin_setjmp(before) == 0)
		sample_and_jump(LEFT, before);
	__asm__ volatile("" ::: "memory"); /* no tail call: the jump comes back to this frame */
}

/* Overwrites the frames that were left, and runs the operation on the other stack. */
__attribute__((noinline)) static void cover_and_switch(int frames)
{
	char local[150];

	memset(local, 0x41, sizeof(local));
	__asm__ volatile("" ::"r"(local) : "memory");
	if (frames > 0)
		cover_and_switch(frames - 1);
	else
		ck_assert_int_eq(swapcontext(&here, &there), 0);
	__asm__ volatile("" ::: "memory");
}

static void run_there(void)
{
	operation();
	ck_assert_int_eq(swapcontext(&there, &here), 0);
}

static void switch_to(void (*function)(void))
{
	char *memory =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(memory, MAP_FAILED);
	operation = function;
	ck_assert_int_eq(getcontext(&there), 0);
	there.uc_stack.ss_sp = memory;
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = NULL;
	makecontext(&there, run_there, 0);
	leave_frames();
	cover_and_switch(4);
	ck_assert_int_eq(munmap(memory, STACK_BYTES), 0);
}

static int truncated;

static void retrieve_there(void)
{
	truncated = traced_check();
}

/* What is open is truncated. Back on its own stack, the thread sees what is gone; the tree then counts
 * the frames once more that were open. */
START_TEST(retrieve)
{
	struct incstack_tree *tree;
	int more = 0;

	traced_open((unsigned)_i + 1, INCSTACK_MODE_PATCH);
	switch_to(retrieve_there);
	ck_assert_int_gt(truncated, 0);
	traced_sample();
	ck_assert_int_eq(incstack_stack_retrieve(traced_stack, &tree), 0);
	ck_assert_uint_eq(tree->count, 1);
	ck_assert(traced_agrees(tree->traces, &more));
	ck_assert_int_eq(more, 0);
	incstack_tree_release(tree);
	traced_close();
}
END_TEST

static void complete_there(void)
{
	ck_assert_int_eq(incstack__stack_complete(traced_stack), 0);
}

/* Nothing is walked there. Back on its own stack, the thread sees what is gone. */
START_TEST(complete)
{
	traced_open((unsigned)_i + 1, INCSTACK_MODE_PATCH);
	switch_to(complete_there);
	traced_check();
	traced_close();
}
END_TEST

static void change_mode_there(void)
{
	ck_assert_int_eq(incstack_stack_set_mode(traced_stack, INCSTACK_MODE_FULL), 0);
	truncated = traced_check();
}

START_TEST(change_of_mode)
{
	traced_open((unsigned)_i + 1, INCSTACK_MODE_PATCH);
	switch_to(change_mode_there);
	ck_assert_int_gt(truncated, 0);
	traced_close();
}
END_TEST

/* All is known to be right here, so another thread may walk what is open. */
static void *retrieve_by_another(void *argument)
{
	ck_assert_int_eq(incstack_stack_set_owner(traced_stack), 0);
	truncated = traced_check();
	return argument;
}

START_TEST(another_thread)
{
	pthread_t thread;

	traced_open(2, INCSTACK_MODE_PATCH);
	traced_sample();
	ck_assert_int_eq(pthread_create(&thread, NULL, retrieve_by_another, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(truncated, 0);
	ck_assert_int_eq(incstack_stack_set_owner(traced_stack), 0);
	traced_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("switched stack");
	TCase *tests = tcase_create("switched stack");

	tcase_add_loop_test(tests, retrieve, 0, 4);
	tcase_add_loop_test(tests, complete, 0, 4);
	tcase_add_loop_test(tests, change_of_mode, 0, 4);
	tcase_add_test(tests, another_thread);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
