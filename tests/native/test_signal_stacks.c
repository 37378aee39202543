/* SPDX-License-Identifier: MIT
 *
 * Tests samples on stacks with unknown bounds, and in handlers on a signal stack. Their traces are
 * those of a full walk, and the barriers of the thread's stack stay as they were. Frames that were
 * left unannounced before are not taken for the frames that are now at their places. Also tests
 * jumps out of a handler that interrupted a sample or a return, at any of their instructions.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "../unit/run_suite.h"
#include "../unit/sample_native.h"
#include "checked.h"

enum { STACK_BYTES = 256 << 10, DEPTH = 12 };

static struct incstack_stack *stack;
static char *strange_stack;
static ucontext_t here;
static ucontext_t there;

/* Below or above the thread's stack, which grows down from the top of the address
 * space: above means that the test's thread has a stack of its own, low down. */
static void *map_stack(uintptr_t hint)
{
	void *memory = mmap((void *)hint, STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(memory != MAP_FAILED);
	return memory;
}

static OPAQUE void nest(int depth, void (*action)(void))
{
	if (depth == 0)
		action();
	else
		nest(depth - 1, action);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

static OPAQUE void sample_once(void)
{
	ck_assert_int_eq(sample_checked(stack), 0);
}

/* ---- a stack that nobody described ------------------------------------------------ */

static void strange_main(void)
{
	nest(DEPTH, sample_once);
	nest(DEPTH / 2, sample_once);
}

static OPAQUE void visit_strange(void)
{
	const uint64_t planted = checked_stats(stack).planted;

	ck_assert_int_eq(getcontext(&there), 0);
	there.uc_stack.ss_sp = strange_stack;
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	makecontext(&there, strange_main, 0);
	ck_assert_int_eq(swapcontext(&here, &there), 0);
	ck_assert_uint_eq(checked_stats(stack).planted, planted);
}

static OPAQUE void sample_visit_sample(void)
{
	sample_once();
	visit_strange();
	sample_once();
}

static void *visit_from_thread(void *arg)
{
	const bool above = arg != NULL;
	struct incstack_stats stats;

	(void)arg;
	stack = checked_thread();
	strange_stack = map_stack(0);
	ck_assert(((uintptr_t)strange_stack > (uintptr_t)&stats) == above);
	nest(3, sample_once);
	nest(DEPTH, sample_visit_sample);
	nest(3, sample_once);
	stats = checked_stats(stack);
	ck_assert_uint_eq(stats.stale, 0);
	ck_assert_uint_gt(stats.returns, 0);
	checked_close(stack);
	munmap(strange_stack, STACK_BYTES);
	return NULL;
}

static void run_on_low_stack(void *(*body)(void *))
{
	pthread_attr_t attributes;
	pthread_t thread;
	void *low = map_stack(UINT64_C(0x10000000));

	ck_assert_int_eq(pthread_attr_init(&attributes), 0);
	ck_assert_int_eq(pthread_attr_setstack(&attributes, low, STACK_BYTES), 0);
	ck_assert_int_eq(pthread_create(&thread, &attributes, body, low), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attributes);
}

START_TEST(strange_stack_below)
{
	checked_open(INCSTACK_MODE_PATCH, (unsigned)_i + 1);
	visit_from_thread(NULL);
}
END_TEST

START_TEST(strange_stack_above)
{
	checked_open(INCSTACK_MODE_PATCH, (unsigned)_i + 1);
	run_on_low_stack(visit_from_thread);
}
END_TEST

/* ---- handlers on a signal stack ---------------------------------------------------- */

static sigjmp_buf jump;
static bool jump_out;

static void set_handler(int number, void (*handler)(int, siginfo_t *, void *))
{
	const struct sigaction action = {.sa_sigaction = handler,
					 .sa_flags = SA_SIGINFO | SA_ONSTACK};
	const stack_t alternate = {.ss_sp = map_stack(0), .ss_size = STACK_BYTES};

	ck_assert_int_eq(sigaltstack(&alternate, NULL), 0);
	ck_assert_int_eq(sigaction(number, &action, NULL), 0);
}

static void sampling_handler(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	nest(3, sample_once);
	nest(5, sample_once);
	if (jump_out)
		siglongjmp(jump, 1);
}

static OPAQUE void raise_signal(void)
{
	sample_once();
	ck_assert_int_eq(raise(SIGUSR1), 0);
	sample_once();
}

START_TEST(handler_samples_and_returns)
{
	struct incstack_stats stats;
	uint64_t shared;

	checked_open(INCSTACK_MODE_PATCH, (unsigned)_i + 1);
	stack = checked_thread();
	set_handler(SIGUSR1, sampling_handler);
	jump_out = false;
	for (int i = 0; i < 20; i++)
		nest(DEPTH - i % 5, raise_signal);
	stats = checked_stats(stack);
	shared = stats.shared;
	ck_assert_uint_eq(stats.stale, 0);
	ck_assert_uint_gt(stats.returns, 20);
	/* The walk from the handler reached the known frames of the interrupted stack. */
	ck_assert_uint_ge(shared, 70);
	ck_assert_uint_eq(compare_all(stack), 0);
	checked_close(stack);
}
END_TEST

START_TEST(handler_samples_and_jumps_out)
{
	checked_open(INCSTACK_MODE_PATCH, (unsigned)_i + 1);
	stack = checked_thread();
	set_handler(SIGUSR1, sampling_handler);
	jump_out = true;
	for (volatile int i = 0; i < 20; i++) {
		if (sigsetjmp(jump, 1) == 0)
			nest(DEPTH + i % 7, raise_signal);
		nest(6 + i % 3, sample_once);
	}
	ck_assert_uint_eq(checked_stats(stack).samples, 20 * 4);
	ck_assert_uint_gt(checked_stats(stack).returns, 0);
	checked_close(stack);
}
END_TEST

/* ---- an unannounced exit before the handler ----------------------------------------- */

static void comparing_handler(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	compare_all(stack);
}

static OPAQUE void sample_and_jump(void)
{
	sample_once();
	siglongjmp(jump, 1);
}

/* Its frames are larger than those of nest(), so that parts of them remain in memory. */
static OPAQUE void nest_widely(int depth, void (*action)(void))
{
	char room[200];

	__asm__ volatile("" ::"r"(room));
	if (depth == 0)
		action();
	else
		nest_widely(depth - 1, action);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

static OPAQUE void raise_only(void)
{
	ck_assert_int_eq(raise(SIGUSR1), 0);
}

/* The frames that were sampled are gone, and others are at their places, when a handler on the
 * signal stack completes the trace. */
START_TEST(handler_completes_after_exit)
{
	checked_open(INCSTACK_MODE_PATCH, (unsigned)_i + 1);
	stack = checked_thread();
	set_handler(SIGUSR1, comparing_handler);
	for (volatile int i = 0; i < 20; i++) {
		if (sigsetjmp(jump, 1) == 0)
			nest(DEPTH + i, sample_and_jump);
		if (i % 2)
			nest(DEPTH + i + 3, raise_only);
		else
			nest_widely(DEPTH - i / 2, raise_only);
	}
	checked_close(stack);
}
END_TEST

/* ---- a jump out of any instruction -------------------------------------------------- */

static int steps_left;
static bool announce;
static uintptr_t jump_sp;

static void step_handler(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	(void)number;
	(void)info;
	if (steps_left == 0)
		interrupted->uc_mcontext.gregs[REG_EFL] &= ~0x100;
	if (steps_left == 0 || --steps_left > 0)
		return;
	if (announce)
		incstack_stack_unwinding_to(stack, jump_sp);
	siglongjmp(jump, 1);
}

/* That of its caller. */
static OPAQUE uintptr_t stack_pointer(void)
{
	return (uintptr_t)__builtin_frame_address(0) + 16;
}

static inline void single_step(void)
{
	if (steps_left > 0)
		__asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
}

static inline void stop_stepping(void)
{
	steps_left = 0;
	__asm__ volatile("nop" ::: "memory");
}

static OPAQUE void step_in_sample(void)
{
	single_step();
	sample_native(stack, UINT64_MAX, 1);
	stop_stepping();
}

static OPAQUE void step_in_return(void)
{
	ck_assert_int_eq(sample_native(stack, UINT64_MAX, 1), 0);
	single_step();
}

static void (*const stepped[])(void) = {step_in_sample, step_in_return};

/* The traces of the stepped samples themselves are only counted. */
static void drop_traces(void)
{
	struct incstack_tree *tree = NULL;

	ck_assert_int_eq(incstack_stack_retrieve(stack, &tree), 0);
	incstack_tree_release(tree);
}

/* Interrupts after `steps` instructions; false if it ended before. */
static OPAQUE bool jump_after(int steps, void (*action)(void))
{
	char room[1024]; /* what is left lies below the functions that look at it */

	__asm__ volatile("" ::"r"(room));
	nest(3, sample_once);
	jump_sp = stack_pointer();
	steps_left = steps;
	if (sigsetjmp(jump, 1) == 0) {
		nest(4, action);
		stop_stepping();
		return false;
	}
	return true;
}

static void check_after(void)
{
	/* From a frame above the one that was left: the first operation notices. */
	compare_all(stack);
	nest(2, sample_once);
	nest(6, sample_once);
	ck_assert_int_eq(incstack__stack_verify(stack), 0);
	ck_assert_uint_eq(compare_all(stack), 0);
}

START_TEST(jump_out_of_any_instruction)
{
	bool again = true;

	announce = _i & 1;
	checked_open(INCSTACK_MODE_PATCH, 2);
	stack = checked_thread();
	set_handler(SIGTRAP, step_handler);
	jump_after(0, stepped[_i >> 1]); /* every rule is known, every symbol bound */
	drop_traces();
	for (int steps = 1; again; steps += 29) {
		nest(1, sample_once);
		compare_all(stack);
		again = jump_after(steps, stepped[_i >> 1]);
		drop_traces();
		check_after();
		for (uint64_t i = 0; i < checked_count; i++)
			free(checked_walks[i].frames);
		checked_count = checked_compared = 0;
	}
	incstack_stack_destroy(stack);
	incstack_runtime_destroy(checked_runtime);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("signal_stacks");
	TCase *strange = tcase_create("strange");
	TCase *handlers = tcase_create("handlers");
	TCase *jumps = tcase_create("jumps");

	tcase_add_loop_test(strange, strange_stack_below, 0, 4);
	tcase_add_loop_test(strange, strange_stack_above, 0, 4);
	tcase_add_loop_test(handlers, handler_samples_and_returns, 0, 4);
	tcase_add_loop_test(handlers, handler_samples_and_jumps_out, 0, 4);
	tcase_add_loop_test(handlers, handler_completes_after_exit, 0, 4);
	tcase_add_loop_test(jumps, jump_out_of_any_instruction, 0, 4);
	suite_add_tcase(s, strange);
	suite_add_tcase(s, handlers);
	suite_add_tcase(s, jumps);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
