/* SPDX-License-Identifier: MIT
 *
 * Tests unwind tables in which an expression computes the CFA or where a register is saved: PLT entries,
 * realigned frames, signal frames. The reader of .eh_frame and libunwind must agree.
 */
#include <ucontext.h>

#include <incstack/native.h>

#include "cfi_by_hand.h"
#include "../unit/run_suite.h"

START_TEST(expressions)
{
	/* The CFA is stored at fp - 8; the saved frame pointer at fp. */
	make(PROGRAM(EXPRESSION, FP, 2, 0x76, 0, DEF_CFA_EXPRESSION, 3, 0x76, 0x78, 0x06,
		     /* the saved frame pointer at fp - 16, fp + 8 */
		     ADVANCE | 1, EXPRESSION, FP, 2, 0x76, 0x70, ADVANCE | 1, EXPRESSION, FP, 2,
		     0x76, 8,
		     /* sp + 16 */
		     ADVANCE | 1, SAME_VALUE, FP, DEF_CFA_EXPRESSION, 2, 0x77, 16));
	expect(0, INCSTACK_RULE_FP_DEREF, -8, 8, 0);
	expect(1, INCSTACK_RULE_FP_DEREF, -8, 8, 16);
	expect_none(2, false);
	expect(3, INCSTACK_RULE_SP, 16, 8, 0);
}
END_TEST

/* As the linker describes PLT entries of 16 bytes: sp + 8, and 8 more from byte 11 on. */
START_TEST(expression_of_the_pc)
{
	const size_t entry = 16 - (uintptr_t)made % 16;

	make(PROGRAM(DEF_CFA_EXPRESSION, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24,
		     0x22));
	for (size_t i = 0; i < 16; i++)
		expect(entry + i, INCSTACK_RULE_SP, i < 11 ? 8 : 16, 8, 0);
}
END_TEST

/* In place of a CFA: 0 where there is none. */
struct cfa_expression {
	int32_t cfa;
	bool other_knows; /* with cfa 0 */
	unsigned char size, code[24];
};

static const struct cfa_expression cfa_expressions[] = {
	{8, true, 4, {0x77, 0, 0x38, 0x22}},                          /* sp, 8, plus */
	{8, true, 4, {0x38, 0x77, 0, 0x22}},                          /* 8, sp, plus */
	{8, true, 4, {0x77, 16, 0x38, 0x1c}},                         /* sp + 16, 8, minus */
	{200, true, 5, {0x77, 0, 0x08, 200, 0x22}},                   /* const1u */
	{8, true, 5, {0x77, 16, 0x09, 0xf8, 0x22}},                   /* const1s */
	{0xff00, true, 6, {0x77, 0, 0x0a, 0, 0xff, 0x22}},            /* const2u */
	{8, true, 6, {0x77, 16, 0x0b, 0xf8, 0xff, 0x22}},             /* const2s */
	{1 << 24, true, 8, {0x77, 0, 0x0c, 0, 0, 0, 1, 0x22}},        /* const4u */
	{8, true, 8, {0x77, 16, 0x0d, 0xf8, 0xff, 0xff, 0xff, 0x22}}, /* const4s */
	{120, true, 5, {0x77, 0, 0x10, 120, 0x22}},                   /* constu */
	{8, true, 5, {0x77, 16, 0x11, 0x78, 0x22}},                   /* consts */
	{120, true, 4, {0x77, 0, 0x23, 120}},                         /* plus_uconst */
	{8, true, 6, {0x34, 0x12, 0x22, 0x77, 0, 0x22}},              /* 4, dup, plus */
	{8, true, 6, {0x3c, 0x38, 0x1a, 0x77, 0, 0x22}},              /* 12 and 8 */
	{24, true, 6, {0x40, 0x38, 0x21, 0x77, 0, 0x22}},             /* 16 or 8 */
	{16, true, 6, {0x32, 0x33, 0x24, 0x77, 0, 0x22}},             /* 2 << 3 */
	{8, true, 6, {0x38, 0x30, 0x24, 0x77, 0, 0x22}},              /* 8 << 0 */
	{16, true, 8, {0x33, 0x33, 0x29, 0x33, 0x24, 0x77, 8, 0x22}}, /* 3 == 3 */
	{8, true, 8, {0x32, 0x33, 0x2a, 0x33, 0x24, 0x77, 8, 0x22}},  /* 2 >= 3 */
	{16, true, 8, {0x33, 0x33, 0x2a, 0x33, 0x24, 0x77, 8, 0x22}}, /* 3 >= 3 */
	{8, true, 8, {0x33, 0x33, 0x2b, 0x33, 0x24, 0x77, 8, 0x22}},  /* 3 > 3 */
	{16, true, 8, {0x34, 0x33, 0x2b, 0x33, 0x24, 0x77, 8, 0x22}}, /* 4 > 3 */
	{16, true, 8, {0x33, 0x33, 0x2c, 0x33, 0x24, 0x77, 8, 0x22}}, /* 3 <= 3 */
	{8, true, 8, {0x34, 0x33, 0x2c, 0x33, 0x24, 0x77, 8, 0x22}},  /* 4 <= 3 */
	{8, true, 8, {0x33, 0x33, 0x2d, 0x33, 0x24, 0x77, 8, 0x22}},  /* 3 < 3 */
	{16, true, 8, {0x32, 0x33, 0x2d, 0x33, 0x24, 0x77, 8, 0x22}}, /* 2 < 3 */
	{8, true, 8, {0x33, 0x33, 0x2e, 0x33, 0x24, 0x77, 8, 0x22}},  /* 3 != 3 */
	/* Eight are on the stack, and nine, which is one more than the reader has room for. */
	{8, true, 16, {48, 48, 48, 48, 48, 48, 48, 0x77, 8, 34, 34, 34, 34, 34, 34, 34}},
	{0, true, 18, {48, 48, 48, 48, 48, 48, 48, 48, 0x77, 8, 34, 34, 34, 34, 34, 34, 34, 34}},
	{0, false, 5, {0x77, 8, 0x77, 0, 0x22}}, /* the sum of two registers */
	{0, false, 4, {0x38, 0x77, 0, 0x1c}},    /* 8, sp, minus */
	{0, false, 2, {0x38, 0x06}},             /* what is stored at 8 */
	{0, false, 1, {0x48}},                   /* 24 */
	{0, true, 3, {0x77, 8, 0x22}},           /* nothing to add to */
	{0, false, 0, {0}},
};

START_TEST(expressions_of_the_cfa)
{
	for (size_t i = 0; i < sizeof(cfa_expressions) / sizeof(cfa_expressions[0]); i++) {
		const struct cfa_expression *e = &cfa_expressions[i];

		begin_by_hand(NULL, 0);
		put_bytes(&fde, PROGRAM(DEF_CFA_EXPRESSION, e->size));
		put_bytes(&fde, e->code, e->size);
		put_length(&fde);
		dump("FDE", &fde); /* the line that is printed last has failed */
		if (e->cfa != 0)
			expect(0, INCSTACK_RULE_SP, e->cfa, 8, 0);
		else
			expect_none(0, e->other_knows);
	}
}
END_TEST

/* A CFA that an expression has computed has no register and no offset that could be changed
 * alone. */
START_TEST(computed_then_changed)
{
	static const unsigned char changes[] = {DEF_CFA_OFFSET, DEF_CFA_REGISTER,
						DEF_CFA_OFFSET_SIGNED};
	struct incstack_rule own, other;
	bool other_knows;

	for (size_t i = 0; i < sizeof(changes); i++) {
		make(PROGRAM(DEF_CFA_EXPRESSION, 2, 0x76, 16, ADVANCE | 1, changes[i], SP,
			     ADVANCE | 1, DEF_CFA, SP, 24, ADVANCE | 1, DEF_CFA_OFFSET, 32));
		expect(0, INCSTACK_RULE_FP, 16, 8, 0);
		ck_assert(!ask_both(1, &own, &other, &other_knows));
	}
	make(PROGRAM(DEF_CFA_EXPRESSION, 2, 0x76, 16, DEF_CFA, SP, 24, ADVANCE | 1, DEF_CFA_OFFSET,
		     32));
	expect(1, INCSTACK_RULE_SP, 32, 8, 0);
}
END_TEST

/* The register is where the stack pointer plus an offset leads; the CFA is what is there. */
static void put_place_in_context(unsigned number, int reg)
{
	struct code e = {(unsigned char[8]){0}, NULL};

	e.at = e.start;
	put(&e, 0x77);
	put_signed(&e, (int64_t)(offsetof(ucontext_t, uc_mcontext.gregs) +
				 (size_t)reg * sizeof(greg_t)));
	put(&fde, EXPRESSION);
	put(&fde, number);
	put_unsigned(&fde, (uint64_t)(e.at - e.start));
	put_bytes(&fde, e.start, (size_t)(e.at - e.start));
	if (number != SP)
		return;
	put(&e, 0x06);
	put(&fde, DEF_CFA_EXPRESSION);
	put_unsigned(&fde, (uint64_t)(e.at - e.start));
	put_bytes(&fde, e.start, (size_t)(e.at - e.start));
}

/* All that is loaded must be where the kernel stores it. */
START_TEST(signal_frames)
{
	begin_by_hand(NULL, 0);
	put_place_in_context(RA, REG_RIP);
	put_place_in_context(FP, REG_RBP);
	put_place_in_context(SP, REG_RSP);
	put(&fde, ADVANCE | 1);
	put_place_in_context(FP, REG_RBX);
	put(&fde, ADVANCE | 1);
	put_place_in_context(FP, REG_RBP);
	put_place_in_context(RA, REG_RAX);
	put(&fde, ADVANCE | 1);
	put_place_in_context(RA, REG_RIP);
	put_place_in_context(SP, REG_RAX);
	put(&fde, ADVANCE | 1);
	put_place_in_context(SP, REG_RSP);
	put_bytes(&fde, PROGRAM(EXPRESSION, SP, 2, 0x77, 8));
	put_length(&fde);
	expect(0, INCSTACK_RULE_SIGNAL, 0, 0, 0);
	for (size_t i = 1; i < 4; i++)
		expect_none(i, false);
	expect_none(4, true);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("expressions of native CFI");
	TCase *tests = tcase_create("expressions");

	tcase_add_test(tests, expressions);
	tcase_add_test(tests, expressions_of_the_cfa);
	tcase_add_test(tests, expression_of_the_pc);
	tcase_add_test(tests, computed_then_changed);
	tcase_add_test(tests, signal_frames);
	suite_add_tcase(suite, tests);
	return suite;
}

int main(void)
{
	find_entries();
	return run_suite(suite());
}
