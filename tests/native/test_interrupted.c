/* SPDX-License-Identifier: MIT
 *
 * Tests samples in a signal handler on the machine stack. A sample that needs an unknown rule is
 * refused and counted. After an operation outside of handlers the rule is known.
 */
#include <signal.h>

#include <incstack/signal.h>

#include "../unit/run_suite.h"
#include "../unit/sample_native.h"
#include "traced.h"

static int result;

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	result = incstack_stack_sample_signal(traced_stack, 0, 1, context);
}

typedef int find_rule(void *context, uintptr_t address, struct incstack_rule *rule);

static void open_with(find_rule *in_handler, int number)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	struct incstack_embedder embedder = *incstack_native_embedder();
	struct incstack_options options = {
		.size = sizeof(options), .distance = 1, .embedder = &embedder};

	embedder.signals.find_rule = in_handler;
	ck_assert_int_eq(sigaction(number, &action, NULL), 0);
	ck_assert_int_eq(incstack_runtime_create(&options, &traced_runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(traced_runtime, &traced_stack), 0);
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 1 << 19), 0);
}

/* Only rules that were learned outside of a handler are known in one. */
static void open_all(void)
{
	open_with(NULL, SIGUSR1);
}

static uint64_t truncated_of_one(void)
{
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(traced_stack, &tree), 0);
	uint64_t truncated = tree->truncated;
	ck_assert_uint_eq(tree->count, result == 0);
	incstack_tree_release(tree);
	return truncated;
}

/* Each attempt knows one frame more: no rule is looked up in the handler. */
START_TEST(missed_rules_are_learned)
{
	open_all();
	for (int i = 0; i < 3; i++) {
		raise(SIGUSR1);
		ck_assert_int_eq(result, INCSTACK_EUNWIND);
		ck_assert_uint_eq(traced_stats().lost_unwind, (uint64_t)i + 1);
	}
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 0), 0);
	int tries = 1;
	for (;; tries++) {
		raise(SIGUSR1);
		ck_assert_int_eq(result, 0);
		uint64_t before = traced_stats().truncated;
		if (truncated_of_one() == 0)
			break;
		ck_assert_uint_eq(before, (uint64_t)tries);
		ck_assert_int_lt(tries, 64);
	}
	ck_assert_int_gt(tries, 1);
	ck_assert_uint_eq(traced_stats().lost_unwind, 3);
	traced_close();
}
END_TEST

/* A sample outside of handlers looks rules up, too. */
START_TEST(the_next_sample_learns)
{
	open_all();
	raise(SIGUSR1);
	ck_assert_int_eq(result, INCSTACK_EUNWIND);
	ck_assert_int_eq(sample_native(traced_stack, 0, 1), 0);
	raise(SIGUSR1);
	ck_assert_int_eq(result, 0);
	traced_close();
}
END_TEST

/* Rules of code that is being unloaded are not looked up any more. */
START_TEST(missed_rules_of_unloaded_code)
{
	open_all();
	raise(SIGUSR1);
	ck_assert_int_eq(result, INCSTACK_EUNWIND);
	ck_assert_int_eq(incstack_runtime_code_unloading(traced_runtime, NULL, 1, UINTPTR_MAX), 0);
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 0), 0);
	raise(SIGUSR1);
	ck_assert_int_eq(result, INCSTACK_EUNWIND);
	traced_close();
}
END_TEST

/* ---- rules of code that another thread may unload ---- */

static uintptr_t asked_for; /* the address of which the native table would be asked outside */
static int times_asked;

static int find_and_count(void *context, uintptr_t address, struct incstack_rule *rule)
{
	times_asked += address == asked_for;
	return incstack_native_embedder()->code.find_rule(context, address, rule);
}

/* Code without a rule may be unloaded by the time of the next operation, perhaps of another thread. So
 * the native table is asked again only by a handler. */
START_TEST(missed_rules_are_left_to_handlers)
{
	static unsigned char code[16];
	struct incstack_embedder embedder = *incstack_native_embedder();
	struct incstack_options options = {
		.size = sizeof(options), .distance = 1, .embedder = &embedder};
	struct incstack_top top = {.pc = (uintptr_t)code,
				   .sp = (uintptr_t)__builtin_frame_address(0),
				   .flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_INTERRUPTED};

	asked_for = top.pc;
	embedder.code.find_rule = find_and_count;
	ck_assert_int_eq(incstack_runtime_create(&options, &traced_runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(traced_runtime, &traced_stack), 0);
	ck_assert_int_eq(incstack_stack_sample(traced_stack, 0, 1, &top), INCSTACK_EUNWIND);
	ck_assert_uint_eq(traced_stats().lost_unwind, 1);
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 0), 0);
	ck_assert_int_eq(sample_native(traced_stack, 0, 1), 0);
	ck_assert_int_eq(times_asked, 0);
	traced_close();
}
END_TEST

/* Samples itself where it stands; its own return slot is at frame[1]. */
static __attribute__((noinline)) int own_slot_is_patched(uint32_t flags)
{
	const uintptr_t *frame = __builtin_frame_address(0);
	struct incstack_top top = {.fp = (uintptr_t)frame, .flags = flags};
	__asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1" : "=r"(top.pc), "=r"(top.sp));
	result = incstack_stack_sample(traced_stack, 0, 1, &top);
	return *(volatile const uintptr_t *)&frame[1] != incstack_slot_read(&frame[1]);
}

/* At distance 1 too, where any other sample patches it. One place calls, so that the
 * first sample learns the rules. */
START_TEST(own_slot_is_left_alone)
{
	static const uint32_t flags[] = {INCSTACK_TOP_EXACT, INCSTACK_TOP_INTERRUPTED,
					 INCSTACK_TOP_EXACT};
	traced_open(1, INCSTACK_MODE_FULL);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(own_slot_is_patched(flags[i]), i == 2);
		ck_assert_int_eq(result, 0);
		ck_assert_uint_eq(traced_stats().planted > 0, i > 0);
		if (i == 0)
			ck_assert_int_eq(incstack_stack_set_mode(traced_stack, INCSTACK_MODE_PATCH),
					 0);
	}
	traced_close();
}
END_TEST

/* A rule that the embedder provides in a handler is known at once. */
START_TEST(rules_are_found_in_the_handler)
{
	open_with(incstack_native_embedder()->code.find_rule_quickly, SIGUSR1);
	raise(SIGUSR1);
	ck_assert_int_eq(result, 0);
	ck_assert_uint_eq(truncated_of_one(), 0);
	ck_assert_uint_gt(traced_stats().planted, 0);
	ck_assert_uint_eq(traced_stats().lost_unwind, 0);
	traced_close();
}
END_TEST

static int fails_with;

static int not_now(void *context, uintptr_t address, struct incstack_rule *rule)
{
	(void)context;
	(void)address;
	(void)rule;
	return fails_with;
}

/* A later look-up may concern code that is being unloaded. The embedder decides. */
START_TEST(rules_are_asked_for_later)
{
	fails_with = _i ? INCSTACK_EBUSY : INCSTACK_EUNWIND;
	open_with(not_now, SIGUSR1);
	raise(SIGUSR1);
	ck_assert_int_eq(result, INCSTACK_EUNWIND);
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 0), 0);
	raise(SIGUSR1);
	ck_assert_int_eq(result, _i ? INCSTACK_EUNWIND : 0);
	traced_close();
}
END_TEST

/* As gcc ends a function: where it returns, its rule still says that the frame pointer was saved, in
 * a word that is below the stack pointer by now. */
void trap_at_return(void);
__asm__(".text\n.type trap_at_return, @function\n"
	"trap_at_return:\n"
	".cfi_startproc\n"
	"pushq %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"popq %rbp\n"
	".cfi_def_cfa_offset 8\n"
	"int3\n"
	"ret\n"
	".cfi_endproc\n"
	".size trap_at_return, . - trap_at_return\n");

START_TEST(popped_frame_pointer)
{
	open_with(incstack_native_embedder()->code.find_rule_quickly, SIGTRAP);
	trap_at_return();
	ck_assert_int_eq(result, 0);
	ck_assert_uint_eq(truncated_of_one(), 0);
	traced_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("interrupted");
	TCase *tc = tcase_create("unknown rules");
	tcase_add_test(tc, missed_rules_are_learned);
	tcase_add_test(tc, the_next_sample_learns);
	tcase_add_test(tc, missed_rules_of_unloaded_code);
	tcase_add_test(tc, missed_rules_are_left_to_handlers);
	tcase_add_test(tc, own_slot_is_left_alone);
	tcase_add_test(tc, rules_are_found_in_the_handler);
	tcase_add_loop_test(tc, rules_are_asked_for_later, 0, 2);
	tcase_add_test(tc, popped_frame_pointer);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
