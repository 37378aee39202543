/* SPDX-License-Identifier: MIT
 *
 * Tests what happens for an unwinder whose functions cannot be called: the barriers of the
 * calling thread are lifted and those of other threads are not; during an operation only the
 * slots are restored; no trace is lost. Also tests how that unwinder's _Unwind_Resume is found.
 */
#include <pthread.h>
#include <unwind.h>

#include "trace/unwinder.h"
#include "trace/aside.h"
#include "trace/thunks.h"
#include "../unit/hand_made.h"
#include "../unit/run_suite.h"
#include "traced.h"

#define NOINLINE __attribute__((noinline))
#define FRAME ((const uintptr_t *)__builtin_frame_address(0))

enum { TOP = 20, OUTER = 10 };

/* ---- whose barriers ----------------------------------------------------------------------- */

static void open_two(void)
{
	hand_open((struct incstack_options){.distance = 1});
	hand_sample(OUTER);
	hand_sample(TOP);
	ck_assert(hand_patched(OUTER) && hand_patched(TOP));
}

static void *step_aside_elsewhere(void *argument)
{
	uint32_t number = 0;
	(void)argument;
	incstack__step_aside(FRAME);
	ck_assert_ptr_null(incstack__barrier_of_thread(&number));
	return NULL;
}

START_TEST(barriers_of_others_stay)
{
	pthread_t thread;
	uint32_t number = 0;
	open_two();
	ck_assert_int_eq(pthread_create(&thread, NULL, step_aside_elsewhere, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert(hand_patched(OUTER) && hand_patched(TOP));
	ck_assert_uint_eq(hand_stats().foreign_unwinders, 0);
	ck_assert_ptr_eq(incstack__barrier_of_thread(&number), hand.s);
	incstack__step_aside(FRAME);
	ck_assert(!hand_patched(OUTER) && !hand_patched(TOP));
	ck_assert_uint_eq(hand_stats().foreign_unwinders, 1);
	ck_assert_uint_eq(hand_stats().mode, INCSTACK_MODE_VALIDATE);
	ck_assert(!incstack__stack_is_busy(hand.s));
	number = 0;
	ck_assert_ptr_null(incstack__barrier_of_thread(&number));
	hand_all_complete();
	ck_assert_uint_eq(hand_stats().stale, 0);
	hand_close();
}
END_TEST

/* An operation that a handler has interrupted finds its chain unchanged. */
START_TEST(only_slots_of_an_operation)
{
	open_two();
	const object *newest = hand.s->newest;
	hand.s->busy = hand_sp(TOP);
	incstack__step_aside(FRAME);
	ck_assert_ptr_eq(hand.s->newest, newest);
	ck_assert_uint_eq(hand.s->busy, hand_sp(TOP));
	ck_assert_uint_eq(*hand_slot(OUTER), hand_pc(OUTER - 1));
	ck_assert_uint_eq(*hand_slot(TOP), hand_pc(TOP - 1));
	ck_assert_uint_eq(hand_stats().foreign_unwinders, 2);
	/* A slot that holds something else by now is left alone. */
	*hand_slot(TOP) = 1;
	incstack__resume_aside(NULL, FRAME);
	ck_assert_uint_eq(*hand_slot(TOP), 1);
	*hand_slot(TOP) = hand_pc(TOP - 1);
	hand.s->busy = 0;
	ck_assert_uint_eq(hand_stats().mode, INCSTACK_MODE_PATCH);
	hand_sample(OUTER);
	ck_assert_uint_eq(hand_stats().stale, 2); /* those barriers vanished */
	incstack_tree_release(hand_retrieve());
	hand_close();
}
END_TEST

/* ---- on the machine stack ------------------------------------------------------------------ */

static void (*act)(void);

/* Deeper than the unwinder's own frames may be. */
static NOINLINE int descend(int depth)
{
	if (depth)
		depth = descend(depth - 1);
	else
		act();
	__asm__ volatile("" : "+r"(depth));
	return depth + 1;
}

static NOINLINE void sample_and_step_aside(void)
{
	traced_sample();
	ck_assert_uint_gt(traced_stats().planted, 0);
	incstack__step_aside(FRAME);
}

/* No cleanup called an unwinder here, so there is nothing to resume: control comes back. */
static NOINLINE void sample_and_resume_aside(void)
{
	traced_sample();
	incstack__resume_aside(NULL, FRAME);
}

static void run_aside(void)
{
	traced_open(3, INCSTACK_MODE_PATCH);
	descend(20);
	ck_assert_uint_eq(traced_stats().foreign_unwinders, 1);
	ck_assert_uint_eq(traced_stats().mode, INCSTACK_MODE_VALIDATE);
	ck_assert_uint_eq(traced_stats().returns, 0);
	descend(3);
	ck_assert_int_eq(traced_check(), 0);
	traced_close();
}

static void *run_aside_on_thread(void *argument)
{
	run_aside();
	return argument;
}

START_TEST(open_traces_are_complete)
{
	static void (*const acts[])(void) = {sample_and_step_aside, sample_and_resume_aside};
	pthread_t thread;
	act = acts[_i];
	run_aside();
	ck_assert_int_eq(pthread_create(&thread, NULL, run_aside_on_thread, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

static bool blind;

static int rule_unless_blind(void *context, uintptr_t address, struct incstack_rule *rule)
{
	return blind ? INCSTACK_EUNWIND
		     : incstack_native_embedder()->code.find_rule_quickly(context, address, rule);
}

static void open_by_hand(const struct incstack_embedder *embedder)
{
	const struct incstack_options options = {
		.size = sizeof(options), .embedder = embedder, .distance = 1};
	uintptr_t low, high;
	traced_samples = 0;
	ck_assert_int_eq(incstack_native_stack_range(&low, &high), 0);
	ck_assert_int_eq(incstack_runtime_create(&options, &traced_runtime), 0);
	ck_assert_int_eq(incstack_stack_create(traced_runtime, low, high, &traced_stack), 0);
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 1 << 16), 0);
}

static NOINLINE void blindly(void)
{
	traced_sample();
	ck_assert_int_eq(incstack_runtime_code_unloading(traced_runtime, NULL, 1, UINTPTR_MAX), 0);
	blind = true;
	incstack__resume_aside(NULL, FRAME);
	blind = false;
}

/* Nothing can be walked: the open traces are cut, and every return leads to the right place. */
START_TEST(no_rules)
{
	struct incstack_embedder embedder = *incstack_native_embedder();
	struct incstack_tree *tree;
	embedder.code.find_rule_quickly = NULL;
	embedder.code.find_rule = _i ? NULL : rule_unless_blind;
	embedder.code.frame_pointers = (uint32_t)_i;
	open_by_hand(&embedder);
	act = blindly;
	ck_assert_int_eq(descend(5), 6);
	ck_assert_uint_eq(traced_stats().returns, 0);
	ck_assert_uint_eq(traced_stats().foreign_unwinders, 1);
	ck_assert_uint_eq(traced_stats().mode, INCSTACK_MODE_VALIDATE);
	ck_assert_int_eq(incstack_stack_retrieve(traced_stack, &tree), 0);
	ck_assert_uint_eq(tree->count, 1);
	ck_assert_uint_eq(tree->truncated, 1);
	incstack_tree_release(tree);
	traced_close();
}
END_TEST

/* While an operation is in progress, nothing is walked either. */
START_TEST(operations_go_on)
{
	traced_open(1, INCSTACK_MODE_PATCH);
	traced_sample();
	traced_stack->busy = (uintptr_t)FRAME;
	incstack__resume_aside(NULL, FRAME);
	ck_assert_uint_eq(traced_stack->busy, (uintptr_t)FRAME);
	traced_stack->busy = 0;
	ck_assert_uint_eq(traced_stats().mode, INCSTACK_MODE_PATCH);
	traced_sample();
	ck_assert_uint_eq(traced_stats().stale, 1); /* the barrier whose slot was restored */
	traced_check();
	traced_close();
}
END_TEST

/* ---- the _Unwind_Resume of a cleanup -------------------------------------------------------- */

/* Calls of each kind, in a function with a personality routine, and one in a function without. */
extern const char after_relative[], after_indirect[], after_other[], after_data[], after_far[],
	after_low[], after_plain[];
extern char aside_target[];
__asm__(".text\n.globl aside_target\naside_target:\n\tud2\n"
	".data\naside_pointer:\n\t.quad aside_target\naside_far:\n\t.quad -1\naside_low:\n\t.quad "
	"1\n"
	".text\naside_cleanup:\n\t.cfi_startproc\n\t"
	".cfi_personality 0x9b, DW.ref.incstack_aside_personality\n\t"
	"call aside_target\n.globl after_relative\nafter_relative:\n\t"
	"call *aside_pointer(%rip)\n.globl after_indirect\nafter_indirect:\n\t"
	".byte 0xff, 0x14\n\t.long aside_pointer - . - 4\n.globl after_other\nafter_other:\n\t"
	".byte 0x90, 0x15\n\t.long aside_pointer - . - 4\n.globl after_data\nafter_data:\n\t"
	"call *aside_far(%rip)\n.globl after_far\nafter_far:\n\t"
	"call *aside_low(%rip)\n.globl after_low\nafter_low:\n\t"
	"nop\n\t.cfi_endproc\n"
	"aside_plain:\n\t.cfi_startproc\n\t"
	"call aside_target\n.globl after_plain\nafter_plain:\n\tnop\n\t.cfi_endproc\n"
	".section .data.rel.ro,\"aw\"\n.balign 8\nDW.ref.incstack_aside_personality:\n\t"
	".quad incstack__thunk_personality\n.text\n");

/* A cleanup, and the _Unwind_Resume that it calls, which finds that the handler's frame seems
 * to be a thunk: it is called again, with the same exception. */
void aside_leave(void *exception);
void aside_resume(void *exception);
__asm__(".text\naside_leave:\n\t.cfi_startproc\n\t"
	".cfi_personality 0x9b, DW.ref.incstack_aside_personality\n\t"
	"push %rbp\n\t.cfi_def_cfa_offset 16\n\t.cfi_offset 6, -16\n\t"
	"mov %rsp, %rbp\n\t.cfi_def_cfa_register 6\n\tcall aside_resume\n\t"
	"pop %rbp\n\t.cfi_def_cfa 7, 8\n\tret\n\t.cfi_endproc\n");

static unsigned resumes;
static void *last_exception;

void aside_resume(void *exception)
{
	last_exception = exception;
	if (resumes++ == 0)
		incstack__resume_aside(exception, FRAME);
	__asm__ volatile("");
}

/* A stack that the thread does not run on is lifted, too, but not walked. */
START_TEST(resume_is_called)
{
	int exception;
	resumes = 0;
	open_two();
	traced_open(1, INCSTACK_MODE_PATCH);
	traced_sample();
	aside_leave(&exception);
	ck_assert_uint_eq(resumes, 2);
	ck_assert_ptr_eq(last_exception, &exception);
	ck_assert_uint_eq(traced_stats().mode, INCSTACK_MODE_VALIDATE);
	ck_assert_uint_eq(hand_stats().mode, INCSTACK_MODE_VALIDATE);
	ck_assert_int_eq(traced_check(), 0);
	traced_close();
	hand_all_complete();
	hand_close();
}
END_TEST

static bool resumed(const char *pc, uintptr_t unwinder, uintptr_t *found)
{
	void (*resume)(void *) = NULL;
	const bool is_end = incstack__unwinder_resumed((uintptr_t)pc, unwinder, &resume);
	*found = (uintptr_t)resume;
	return is_end;
}

/* A function with cleanups ends the unwinder's frames. What it called is the function sought
 * only if it lies, as the unwinder does, in the same object. */
START_TEST(resume_is_found)
{
	const uintptr_t here = (uintptr_t)after_plain, target = (uintptr_t)aside_target;
	static const uintptr_t elsewhere[] = {1, UINTPTR_MAX};
	const char *const nothing[] = {after_other, after_data, after_far, after_low};
	char heap[16] = {0};
	uintptr_t found;
	ck_assert(resumed(after_relative, here, &found));
	ck_assert_uint_eq(found, target);
	ck_assert(resumed(after_indirect, here, &found));
	ck_assert_uint_eq(found, target);
	for (int i = 0; i < 4; i++) {
		ck_assert(resumed(nothing[i], here, &found));
		ck_assert_uint_eq(found, 0);
	}
	for (int i = 0; i < 2; i++) {
		ck_assert(resumed(after_relative, elsewhere[i], &found));
		ck_assert_uint_eq(found, 0);
	}
	ck_assert(!resumed(after_plain, here, &found));
	ck_assert_uint_eq(found, 0);
	ck_assert(!resumed(heap + 1, here, &found));
}
END_TEST

extern _Atomic uintptr_t incstack__landing_resume[INCSTACK__LANDINGS];

/* Each unwinder has a landing pad of its own; without one it cannot be used. */
START_TEST(landing_pads_run_out)
{
	const uintptr_t code = (uintptr_t)_Unwind_GetIP, resume = (uintptr_t)_Unwind_Resume;
	for (int i = 0; i < INCSTACK__LANDINGS; i++) {
		ck_assert_int_eq(incstack_unwinder_known(code), 1);
		ck_assert_uint_eq(atomic_load(&incstack__landing_resume[0]), resume);
		atomic_store(&incstack__landing_resume[INCSTACK__LANDINGS - 1 - i], 1);
	}
	ck_assert_int_eq(incstack_unwinder_known(code), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("step aside");
	TCase *tests = tcase_create("foreign unwinders");
	tcase_add_test(tests, barriers_of_others_stay);
	tcase_add_test(tests, only_slots_of_an_operation);
	tcase_add_loop_test(tests, open_traces_are_complete, 0, 2);
	tcase_add_loop_test(tests, no_rules, 0, 2);
	tcase_add_test(tests, operations_go_on);
	tcase_add_test(tests, resume_is_found);
	tcase_add_test(tests, resume_is_called);
	tcase_add_test(tests, landing_pads_run_out);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
