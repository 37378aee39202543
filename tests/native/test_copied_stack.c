/* SPDX-License-Identifier: MIT
 *
 * Tests a return slot that is changed behind the library's back and later changed back, as a
 * runtime does that copies stacks. The barrier is found missing, and later the return goes
 * through its thunk after all. It must lead to the right place, whatever was sampled since.
 * After a few such returns nothing is patched any more.
 */
#include "../unit/run_suite.h"
#include "traced.h"

#define NOINLINE __attribute__((noinline))

enum { RETURNS = 12, MOST = 8 };

/* Plants barriers of its own, with thunks that are free by now. */
static NOINLINE int descend(int depth)
{
	traced_sample();
	int result = depth ? descend(depth - 1) : 0;
	traced_sample();
	return result + 1;
}

/* Its return slot gets what it would hold on another stack, and then the thunk again. */
static NOINLINE int copied(int depth)
{
	volatile uintptr_t *slot = (uintptr_t *)__builtin_frame_address(0) + 1;
	traced_sample();
	const uintptr_t thunk = *slot;
	const uintptr_t resume = incstack_slot_read((const uintptr_t *)slot);
	ck_assert_uint_ne(thunk, resume);
	*slot = resume;
	ck_assert_int_eq(descend(depth), depth + 1);
	*slot = thunk;
	ck_assert_int_eq(descend(depth), depth + 1);
	ck_assert_uint_eq(incstack_slot_read((const uintptr_t *)slot), resume);
	return depth;
}

static void reserve(void)
{
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 1 << 19), 0);
}

START_TEST(returns_to_the_right_place)
{
	struct incstack_stack *other;
	traced_open(1, INCSTACK_MODE_PATCH);
	for (int i = 0; i < MOST; i++) {
		ck_assert_uint_eq(traced_stats().mode, INCSTACK_MODE_PATCH);
		ck_assert_int_eq(copied(i), i);
		ck_assert_uint_eq(traced_stats().revived, (uint64_t)i + 1);
		reserve();
	}
	ck_assert_uint_eq(traced_stats().mode, INCSTACK_MODE_VALIDATE);
	for (int i = 0; i < RETURNS; i++)
		ck_assert_int_eq(descend(i), i + 1);
	ck_assert_int_eq(incstack_stack_set_mode(traced_stack, INCSTACK_MODE_PATCH), 0);
	ck_assert_uint_eq(traced_stats().mode, INCSTACK_MODE_VALIDATE);
	ck_assert_int_eq(incstack_stack_create_native(traced_runtime, &other), 0);
	struct incstack_stats stats = {.size = sizeof(stats)};
	ck_assert_int_eq(incstack_stack_stats(other, &stats), 0);
	ck_assert_uint_eq(stats.mode, INCSTACK_MODE_VALIDATE);
	incstack_stack_destroy(other);
	traced_check();
	traced_close();
}
END_TEST

/* The state of the stack ends in between: the thunk still leads to the right place. */
static NOINLINE int outlives(void)
{
	volatile uintptr_t *slot = (uintptr_t *)__builtin_frame_address(0) + 1;
	traced_open(1, INCSTACK_MODE_PATCH);
	traced_sample();
	const uintptr_t thunk = *slot;
	*slot = incstack_slot_read((const uintptr_t *)slot);
	descend(3);
	for (int i = 0; i < MOST; i++)
		copied(i);
	incstack_stack_destroy(traced_stack);
	*slot = thunk;
	return 5;
}

START_TEST(outlives_the_state_of_its_stack)
{
	ck_assert_int_eq(outlives(), 5);
	incstack_runtime_destroy(traced_runtime);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("copied_stack");
	TCase *t = tcase_create("copied_stack");

	tcase_add_test(t, returns_to_the_right_place);
	tcase_add_test(t, outlives_the_state_of_its_stack);
	suite_add_tcase(s, t);
	return run_suite(s);
}
