/* SPDX-License-Identifier: MIT
 *
 * Tests the outermost frames of coroutines that no unwind table describes. Those of
 * Boost.Context fibers are recognized by their instructions; similar code is not.
 */
#include <malloc.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <incstack/native.h>

#include "../unit/run_suite.h"

/* The code of Boost.Context that starts a fiber and that its function returns to. The other
 * variants are no outermost frames: their code goes on, is entered in another way, or has no
 * end. */
#define STARTS "push %rbp; jmp *%rbx\n"
#define FINISHES "xor %rdi, %rdi; call _exit@PLT; hlt\n"
extern const char fiber_start[], fiber_base[], goes_on[], is_called[], is_cut[];
__asm__(".text\n"
	"fiber_start:" STARTS "fiber_base:" FINISHES STARTS
	"goes_on: xor %rdi, %rdi; call _exit@PLT; ret\n"
	"ret; nop; nop; is_called:" FINISHES STARTS "is_cut: xor %rdi, %rdi; nop; hlt\n"
	".skip 16\n");

static int rule_behind(uintptr_t pc)
{
	struct incstack_rule rule = {.kind = 77};
	const int result = incstack_native_embedder()->code.find_rule(NULL, pc - 1, &rule);

	ck_assert_uint_eq(rule.kind, result == 0 ? INCSTACK_RULE_END : 77);
	return result;
}

START_TEST(base_of_a_fiber)
{
	ck_assert_int_eq(rule_behind((uintptr_t)fiber_base), 0);
	ck_assert_int_eq(rule_behind((uintptr_t)fiber_base + 1), INCSTACK_EUNWIND);
	ck_assert_int_eq(rule_behind((uintptr_t)fiber_base - 1), INCSTACK_EUNWIND);
	ck_assert_int_eq(rule_behind((uintptr_t)goes_on), INCSTACK_EUNWIND);
	ck_assert_int_eq(rule_behind((uintptr_t)is_called), INCSTACK_EUNWIND);
	ck_assert_int_eq(rule_behind((uintptr_t)is_cut), INCSTACK_EUNWIND);
}
END_TEST

/* The same bytes, but in no object. */
START_TEST(copy_of_the_base_of_a_fiber)
{
	enum { BEFORE = 3, BYTES = BEFORE + 9 };
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(page, MAP_FAILED);
	memcpy(page, fiber_start, BYTES);
	ck_assert_int_eq(rule_behind((uintptr_t)page + BEFORE), INCSTACK_EUNWIND);
	ck_assert_int_eq(munmap(page, 4096), 0);
}
END_TEST

/* It is called as often as there are events, so it must keep no memory. */
START_TEST(bounds_keep_no_memory)
{
	uintptr_t low = 0, high = 0;

	for (int i = 0; i < 20; i++) /* libc keeps some blocks that were freed */
		ck_assert_int_eq(incstack_native_stack_range(&low, &high), 0);
	const size_t before = mallinfo2().uordblks;
	for (int i = 0; i < 1000; i++)
		ck_assert(incstack_native_stack_range(&low, &high) == 0);
	ck_assert_uint_lt(mallinfo2().uordblks, before + 8000);
	ck_assert((uintptr_t)__builtin_frame_address(0) - low < high - low);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("native base");
	TCase *all = tcase_create("all");

	tcase_add_test(all, base_of_a_fiber);
	tcase_add_test(all, copy_of_the_base_of_a_fiber);
	tcase_add_test(all, bounds_keep_no_memory);
	suite_add_tcase(suite, all);
	return suite;
}

int main(void)
{
	return run_suite(suite());
}
