/* SPDX-License-Identifier: MIT
 *
 * Tests code whose rules forbid barriers. Its frames are in every trace, and no return address
 * that leads into it is ever changed, neither by a sample nor by a return.
 */
#include "trace/shared.h"
#include "../unit/run_suite.h"
#include "traced.h"

#define NOINLINE __attribute__((noinline))
#define SPARED __attribute__((noinline, section("spared")))

extern const char __start_spared[], __stop_spared[];
static int changed, looked;

static int find_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	const uintptr_t low = (uintptr_t)__start_spared;
	int error = incstack_native_embedder()->code.find_rule(context, address, rule);
	if (!error && address - low < (uintptr_t)__stop_spared - low)
		rule->flags |= INCSTACK_RULE_NO_BARRIER;
	return error;
}

static void open_runtime(unsigned distance)
{
	struct incstack_embedder embedder = *incstack_native_embedder();
	struct incstack_options options = {.size = sizeof(options),
					   .mode = INCSTACK_MODE_PATCH,
					   .distance = distance,
					   .embedder = &embedder};
	embedder.code.find_rule = embedder.code.find_rule_quickly = find_rule;
	traced_samples = 0;
	ck_assert_int_eq(incstack_runtime_create(&options, &traced_runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(traced_runtime, &traced_stack), 0);
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 1 << 19), 0);
}

static NOINLINE void nest(int depth)
{
	if (depth == 0) {
		traced_sample();
		/* A barrier then moves down along known frames, without a walk. */
		if (looked % 2)
			ck_assert_int_eq(incstack__stack_complete(traced_stack), 0);
	} else {
		nest(depth - 1);
	}
	__asm__ volatile("" ::: "memory");
}

/* The return slots of its callees, read by the callee after each of its own calls. */
static NOINLINE void called(void)
{
	const uintptr_t *slot = (const uintptr_t *)__builtin_frame_address(0) + 1;
	for (int depth = 0; depth < 5; depth++) {
		nest(depth);
		looked++;
		changed += *(const volatile uintptr_t *)slot != incstack_slot_read(slot);
	}
}

static SPARED void spared_inside(void)
{
	called();
	__asm__ volatile("" ::: "memory");
}

static SPARED void spared_outside(void)
{
	called();
	spared_inside();
	called();
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void ordinary(void)
{
	called();
	__asm__ volatile("" ::: "memory");
}

static void check_spared(unsigned distance)
{
	open_runtime(distance);
	for (int i = 0; i < 3; i++) {
		changed = looked = 0;
		nest(2);
		spared_outside();
		ck_assert_int_eq(looked, 15);
		ck_assert_int_eq(changed, 0);
		ordinary();
		ck_assert_int_gt(changed, 0);
		ck_assert_int_eq(traced_check(), 0);
	}
	ck_assert_uint_gt(traced_stats().returns, 0);
	traced_close();
}

START_TEST(returns_into_spared_code)
{
	check_spared((unsigned)_i + 1);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("no barrier");
	TCase *all = tcase_create("all");

	tcase_add_loop_test(all, returns_into_spared_code, 0, 4);
	suite_add_tcase(suite, all);
	return suite;
}

int main(void)
{
	return run_suite(suite());
}
