/* SPDX-License-Identifier: MIT
 *
 * Tests the frame iterator on real stacks: at any depth, in a signal handler at every instruction of
 * a program that samples and returns through barriers, and over another thread that waits in its
 * handler. Each walk must equal that of libunwind. A stack with an operation in progress is refused.
 */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include <incstack/frames.h>
#include <incstack/native.h>

#include "trace/shared.h"
#include "../unit/run_suite.h"
#include "../unit/sample_native.h"

int incstack__trampoline_contains(uintptr_t pc);

enum { DEEPEST = 20000, WALK_MAX = DEEPEST + 64, SIGNALS = 200, TRAP_FLAG = 0x100 };

#define OPAQUE __attribute__((noinline))

static struct incstack_runtime *runtime;
static struct incstack_stack *stack;
static uint64_t sampled;
static int errors;

static void open_runtime(unsigned distance)
{
	const struct incstack_options options = {.size = sizeof(options), .distance = distance};
	sampled = 0;
	ck_assert_int_eq(incstack_runtime_create_native(&options, &runtime), 0);
}

static void close_runtime(void)
{
	ck_assert_int_eq(errors, 0);
	incstack_runtime_destroy(runtime);
}

static void open_stack(void)
{
	errors += incstack_stack_create_native(runtime, &stack) != 0 ||
		  incstack_stack_reserve(stack, 1 << 20) != 0;
}

static OPAQUE void nest(int depth, void (*action)(void))
{
	if (depth == 0)
		action();
	else
		nest(depth - 1, action);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

/* ---- a walk by libunwind, and the comparison ------------------------------------------------ */

struct reference {
	struct incstack_frame frames[WALK_MAX];
	int first, count;
	bool trampoline; /* a frame stands in the trampoline, where our walker of libunwind fails */
};

/* The walk of the thread in its handler, from the frame that was interrupted. */
static void note_interrupted(struct reference *r, const void *context)
{
	const greg_t pc = ((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	r->count = incstack_native_walk(r->frames, WALK_MAX);
	r->first = 0;
	while (r->first < r->count && !(r->frames[r->first].flags & INCSTACK_FRAME_EXACT))
		r->first++;
	r->trampoline = incstack__trampoline_contains((uintptr_t)pc);
	for (int i = r->first; i < r->count; i++)
		r->trampoline |= incstack__trampoline_contains(r->frames[i].pc) != 0;
}

/* Whether the iterator shows the frames from `at` on, and then the end. */
static bool shows(struct incstack_frames *frames, const struct reference *r, int at)
{
	int more = 1;
	for (; at < r->count && more > 0; at++) {
		const struct incstack_frame *f = &r->frames[at];
		more = incstack_frames_next(frames);
		if (more <= 0 || frames->frame.pc != f->pc || frames->frame.sp != f->sp ||
		    frames->frame.fp != f->fp || frames->kind != INCSTACK_KIND_C ||
		    (frames->frame.flags & INCSTACK_FRAME_EXACT) !=
			    (f->flags & INCSTACK_FRAME_EXACT))
			return false;
	}
	return more > 0 && incstack_frames_next(frames) == 0;
}

/* The callers of the function that samples. They do not change. */
static struct reference base;
static uintptr_t base_sp;

/* The caller's own frame does not count. */
static OPAQUE void note_base(uintptr_t sp)
{
	base.count = incstack_native_walk(base.frames, WALK_MAX);
	base_sp = sp;
	base.first = 0;
	while (base.frames[base.first].sp < sp)
		base.first++;
}

/* Whether the iterator shows these callers, and then the end. */
static bool shows_base(struct incstack_frames *frames)
{
	int at = base.first, more;
	while ((more = incstack_frames_next(frames)) > 0 && frames->frame.sp < base_sp)
		continue;
	for (; at < base.count; at++, more = incstack_frames_next(frames))
		if (more <= 0 || frames->frame.pc != base.frames[at].pc ||
		    frames->frame.sp != base.frames[at].sp)
			return false;
	return more == 0 && base.count - base.first > 1;
}

static bool is_right(struct incstack_frames *frames, const struct reference *r)
{
	return r->trampoline ? shows_base(frames) : shows(frames, r, r->first);
}

/* ---- by the thread itself --------------------------------------------------------------------- */

static struct reference here;

static struct incstack_frames_place place_of(struct incstack_stack *s)
{
	return (struct incstack_frames_place){.stack = s, .runtime = s ? NULL : runtime};
}

static OPAQUE void compare_here(void)
{
	static struct incstack_frames frames;
	for (int i = 0; i < 2; i++) {
		const struct incstack_frames_place place = place_of(i ? NULL : stack);
		here.count = incstack_native_walk(here.frames, WALK_MAX);
		const struct incstack_top top = incstack_native_top(NULL);
		ck_assert_int_eq(incstack_frames_begin(&frames, &place, &top), 0);
		ck_assert_int_eq(incstack_frames_next(&frames), 1);
		ck_assert_uint_eq(frames.frame.sp, here.frames[0].sp); /* at another call */
		ck_assert(shows(&frames, &here, 1));
	}
	ck_assert_int_gt(here.count, 2);
	ck_assert_int_lt(here.count, WALK_MAX);
}

/* No assertion of Check: it takes a lock, and a thread that holds one must not be stopped. */
static OPAQUE void sample_plainly(void)
{
	errors += sample_native(stack, sampled++, 1) != 0;
}

static OPAQUE void sample_and_compare(void)
{
	sample_plainly();
	compare_here();
	nest(5, compare_here);
}

/* Nothing that was sampled is missing. */
static void close_all(void)
{
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(stack, &tree), 0);
	ck_assert_uint_eq(tree->count, sampled);
	ck_assert_uint_eq(tree->truncated, 0);
	incstack_tree_release(tree);
	incstack_stack_destroy(stack);
	close_runtime();
}

START_TEST(by_the_thread)
{
	struct incstack_stats stats = {.size = sizeof(stats)};
	open_runtime((unsigned)_i + 1);
	open_stack();
	compare_here();
	for (int depth = 1; depth <= DEEPEST; depth = depth < 30 ? depth * 3 : depth * 12)
		nest(depth, sample_and_compare);
	nest(DEEPEST, compare_here);
	ck_assert_int_eq(incstack_stack_stats(stack, &stats), 0);
	ck_assert_uint_gt(stats.planted, 0);
	close_all();
}
END_TEST

/* ---- in a signal handler, at every instruction -------------------------------------------------- */

static int steps, in_operations, in_trampoline, wrong;

static void compare_interrupted(const void *context)
{
	static struct reference r;
	struct incstack_frames frames;
	note_interrupted(&r, context);
	const struct incstack_top top = incstack_native_top(context);
	for (int i = 0; i < 2; i++) {
		const struct incstack_frames_place place = place_of(i ? NULL : stack);
		const int error = incstack_frames_begin(&frames, &place, &top);
		if (i == 0 && incstack__stack_is_busy(stack))
			wrong += error != INCSTACK_EBUSY;
		else if (error || !is_right(&frames, &r))
			wrong++;
	}
	in_operations += incstack__stack_is_busy(stack);
	in_trampoline += r.trampoline;
	steps++;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	(void)number;
	if (info->si_code == SI_KERNEL) /* behind an int3: stepping begins or ends */
		at->uc_mcontext.gregs[REG_EFL] ^= TRAP_FLAG;
	else
		compare_interrupted(at);
}

static OPAQUE void be_stepped(void)
{
	note_base((uintptr_t)__builtin_frame_address(0) + 16);
	__asm__ volatile("int3" ::: "memory");
	nest(4, sample_plainly);
	nest(2, sample_plainly);
	__asm__ volatile("int3" ::: "memory");
}

START_TEST(at_every_instruction)
{
	const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	open_runtime((unsigned)_i + 1);
	open_stack();
	ck_assert_int_eq(sigaction(SIGTRAP, &action, NULL), 0);
	nest(3, be_stepped);
	ck_assert_int_eq(wrong, 0);
	ck_assert_int_gt(steps, 1000);
	ck_assert_int_gt(in_operations, 200);
	ck_assert_int_gt(in_trampoline, 50);
	close_all();
}
END_TEST

/* ---- over a thread that waits in its handler ------------------------------------------------------ */

static struct {
	int request[2], done[2]; /* pipes, because a handler may read and write them */
	struct reference reference;
	const void *context;
} held;
static atomic_bool over, working;

static void wait_in_handler(int number, siginfo_t *info, void *context)
{
	char byte = 0;
	(void)number;
	(void)info;
	note_interrupted(&held.reference, context);
	held.context = context;
	if (write(held.request[1], &byte, 1) != 1 || read(held.done[0], &byte, 1) != 1)
		abort();
}

static void open_held(int flags)
{
	const struct sigaction action = {.sa_sigaction = wait_in_handler,
					 .sa_flags = SA_SIGINFO | flags};
	ck_assert_int_eq(pipe(held.request) | pipe(held.done), 0);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	over = working = false;
}

static void await_handler(void)
{
	char byte;
	ck_assert_int_eq(read(held.request[0], &byte, 1), 1);
}

static void let_go(void)
{
	ck_assert_int_eq(write(held.done[1], "", 1), 1);
}

static void begin_held(struct incstack_frames *frames, struct incstack_stack *s, int result)
{
	const struct incstack_frames_place place = place_of(s);
	const struct incstack_top top = incstack_native_top(held.context);
	ck_assert_int_eq(incstack_frames_begin(frames, &place, &top), result);
}

static OPAQUE void sample_and_compute(void)
{
	sample_plainly();
	for (volatile int i = 0; i < 20000; i++)
		continue;
}

/* The thread samples, and computes and returns below barriers. */
static void *work(void *signal_stack)
{
	const stack_t alternate = {.ss_sp = signal_stack, .ss_size = 1 << 16};
	stack_t before;
	if (signal_stack)
		errors += sigaltstack(&alternate, &before) != 0;
	open_stack();
	while (!over) {
		struct incstack_tree *tree = NULL;
		incstack_stack_reserve(stack, 1 << 16);
		nest(20, sample_and_compute);
		nest(7, sample_and_compute);
		errors += incstack_stack_retrieve(stack, &tree) != 0;
		incstack_tree_release(tree);
		working = true;
	}
	incstack_stack_destroy(stack);
	if (signal_stack) /* a sanitizer frees its own */
		errors += sigaltstack(&before, NULL) != 0;
	return NULL;
}

static OPAQUE void *work_on_top(void *signal_stack)
{
	note_base((uintptr_t)__builtin_frame_address(0) + 16);
	void *result = work(signal_stack);
	__asm__ volatile("" ::: "memory"); /* no tail call */
	return result;
}

START_TEST(over_a_waiting_thread)
{
	static char signal_stack[1 << 16];
	struct incstack_frames frames;
	pthread_t thread;
	int walked = 0;
	open_runtime(0);
	open_held(_i ? SA_ONSTACK : 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, work_on_top, _i ? signal_stack : NULL), 0);
	while (!working) /* its stack is not open before */
		usleep(100);
	for (int i = 0; i < SIGNALS || walked == 0; i++) {
		const struct reference *r = &held.reference;
		ck_assert_int_eq(pthread_kill(thread, SIGUSR1), 0);
		await_handler();
		const bool busy = incstack__stack_is_busy(stack);
		begin_held(&frames, stack, busy ? INCSTACK_EBUSY : 0);
		if (busy)
			begin_held(&frames, NULL, 0);
		ck_assert(is_right(&frames, r));
		walked += !busy;
		let_go();
		usleep((useconds_t)i %
		       100); /* else the next signal is there before the thread runs */
	}
	over = true;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	close_runtime();
}
END_TEST

/* ---- while that thread's stack is being sampled ----------------------------------------------------- */

static bool raised;

static int raise_once(void *context, uintptr_t address, struct incstack_rule *rule)
{
	if (stack && !raised) {
		raised = true;
		raise(SIGUSR1);
	}
	return incstack_native_embedder()->code.find_rule_quickly(context, address, rule);
}

static void *sample_once(void *unused)
{
	(void)unused;
	open_stack();
	nest(10, sample_plainly);
	await_handler(); /* until the main thread has walked again */
	incstack_stack_destroy(stack);
	return NULL;
}

START_TEST(over_a_stack_that_is_sampled)
{
	struct incstack_embedder embedder = *incstack_native_embedder();
	const struct incstack_options options = {
		.size = sizeof(options), .distance = 1, .embedder = &embedder};
	struct incstack_frames frames;
	pthread_t thread;
	embedder.code.find_rule_quickly = raise_once;
	ck_assert_int_eq(incstack_runtime_create(&options, &runtime), 0);
	open_held(0);
	ck_assert_int_eq(pthread_create(&thread, NULL, sample_once, NULL), 0);
	await_handler();
	begin_held(&frames, stack, INCSTACK_EBUSY);
	ck_assert_int_eq(incstack_frames_next(&frames), INCSTACK_EBUSY);
	begin_held(&frames, NULL, 0);
	ck_assert(shows(&frames, &held.reference, held.reference.first));
	let_go();
	ck_assert_int_eq(write(held.request[1], "", 1), 1);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	close_runtime();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frames of native code");
	TCase *tc = tcase_create("walk");
	tcase_add_loop_test(tc, by_the_thread, 0, 3);
	tcase_add_loop_test(tc, at_every_instruction, 0, 3);
	tcase_add_loop_test(tc, over_a_waiting_thread, 0, 2);
	tcase_add_test(tc, over_a_stack_that_is_sampled);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
