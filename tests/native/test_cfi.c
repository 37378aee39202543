/* SPDX-License-Identifier: MIT
 *
 * Tests unwind tables that no compiler writes: the reader of .eh_frame and libunwind must agree
 * at each address of a function whose CIE and FDE are written by hand.
 */
#define _GNU_SOURCE
#include <ucontext.h>

#include <incstack/native.h>

#include "cfi_made.h"
#include "../unit/run_suite.h"

#define PROGRAM(...) \
	(const unsigned char[]){__VA_ARGS__}, sizeof((const unsigned char[]){__VA_ARGS__})

/* The usual CIE, with more behind what compilers write there. */
static void begin_by_hand(const unsigned char *more, size_t size)
{
	static const unsigned char usual[] = {DEF_CFA, SP, 8, OFFSET | RA, 1};

	begin_cie(&common);
	put_bytes(&cie, usual, sizeof(usual));
	put_bytes(&cie, more, size);
	begin_fde(&common);
}

static void make(const unsigned char *program, size_t size)
{
	begin_by_hand(NULL, 0);
	put_bytes(&fde, program, size);
	put_length(&fde);
}

/* Both readers must find this rule; for the kinds END and SIGNAL the rest is 0. */
static void expect(size_t at, uint32_t kind, int32_t cfa, unsigned ra, unsigned fp)
{
	const struct incstack_rule rule = {kind, cfa, (uint16_t)ra, (uint16_t)fp, 0};
	struct incstack_rule own, other;
	bool other_knows;

	ck_assert(ask_both(at, &own, &other, &other_knows));
	if (memcmp(&own, &rule, sizeof(rule)) != 0)
		show("own", true, &own);
	ck_assert_mem_eq(&own, &rule, sizeof(rule));
	ck_assert(other_knows);
	ck_assert_mem_eq(&other, &rule, sizeof(rule));
}

static void expect_none(size_t at, bool other_knows_expected)
{
	struct incstack_rule own, other;
	bool other_knows;

	ck_assert(!ask_both(at, &own, &other, &other_knows));
	ck_assert_int_eq(other_knows, other_knows_expected);
}

/* Each state has its own offset. At 8 + i all states but the last i are back. */
START_TEST(nested_states)
{
	begin_by_hand(NULL, 0);
	for (unsigned i = 1; i <= 8; i++) {
		const unsigned char step[] = {DEF_CFA_OFFSET, (unsigned char)(8 * i),
					      OFFSET | FP,    (unsigned char)i,
					      REMEMBER_STATE, ADVANCE | 1};
		put_bytes(&fde, step, sizeof(step));
	}
	for (unsigned i = 8; i >= 1; i--)
		put_bytes(&fde, (const unsigned char[]){RESTORE_STATE, ADVANCE | 1}, 2);
	put(&fde, RESTORE_STATE);
	put_length(&fde);
	for (unsigned i = 1; i <= 8; i++) {
		expect(i - 1, INCSTACK_RULE_SP, (int32_t)(8 * i), 8, 8 * i);
		expect(8 + 8 - i, INCSTACK_RULE_SP, (int32_t)(8 * i), 8, 8 * i);
	}
	expect_none(16, false); /* one state too many came back */
}
END_TEST

/* More states than fit: from there on the reader returns no rule, never that of a lost state. */
START_TEST(too_many_states)
{
	begin_by_hand(NULL, 0);
	for (unsigned i = 0; i < 8; i++)
		put(&fde, REMEMBER_STATE);
	put_bytes(&fde, PROGRAM(ADVANCE | 1, DEF_CFA_OFFSET, 16, REMEMBER_STATE, DEF_CFA_OFFSET, 32,
				RESTORE_STATE));
	put_length(&fde);
	expect(0, INCSTACK_RULE_SP, 8, 8, 0);
	expect_none(1, true);
}
END_TEST

START_TEST(rules_of_the_cie_restored)
{
	begin_by_hand(PROGRAM(OFFSET | FP, 2));
	put_bytes(&fde,
		  PROGRAM(DEF_CFA_OFFSET, 24, OFFSET | FP, 3, OFFSET_EXTENDED, RA, 2, ADVANCE | 1,
			  RESTORE | FP, ADVANCE | 1, RESTORE_EXTENDED, RA, ADVANCE | 1, SAME_VALUE,
			  FP, UNDEFINED, RA, ADVANCE | 1, RESTORE_EXTENDED, FP, RESTORE | RA));
	put_length(&fde);
	expect(0, INCSTACK_RULE_SP, 24, 16, 24);
	expect(1, INCSTACK_RULE_SP, 24, 16, 16);
	expect(2, INCSTACK_RULE_SP, 24, 8, 16);
	expect(3, INCSTACK_RULE_END, 0, 0, 0);
	expect(4, INCSTACK_RULE_SP, 24, 8, 16);
}
END_TEST

/* A rule holds distances of 16 bits and a CFA of 32. */
START_TEST(large_offsets)
{
	begin_by_hand(NULL, 0);
	for (unsigned i = 0; i < 2; i++) {
		put(&fde, OFFSET | FP);
		put_unsigned(&fde, 8191 + i);
		put(&fde, ADVANCE | 1);
	}
	for (unsigned i = 0; i < 2; i++) {
		put_bytes(&fde, PROGRAM(SAME_VALUE, FP, OFFSET | RA));
		put_unsigned(&fde, 8191 + i);
		put(&fde, ADVANCE | 1);
	}
	for (unsigned i = 0; i < 2; i++) {
		put_bytes(&fde, PROGRAM(OFFSET | RA, 1, DEF_CFA_OFFSET));
		put_unsigned(&fde, UINT64_C(0x7ffffff8) + 8 * i);
		put(&fde, ADVANCE | 1);
	}
	put_bytes(&fde, PROGRAM(DEF_CFA_OFFSET, 12, ADVANCE | 1, DEF_CFA_OFFSET, 0));
	put_length(&fde);
	expect(0, INCSTACK_RULE_SP, 8, 8, 65528);
	expect_none(1, false);
	expect(2, INCSTACK_RULE_SP, 8, 65528, 0);
	expect_none(3, false);
	expect(4, INCSTACK_RULE_SP, 0x7ffffff8, 8, 0);
	expect_none(5, false);
	expect_none(6, false);
	expect(7, INCSTACK_RULE_SP, 0, 8, 0);
}
END_TEST

static void check_vector(const unsigned char *instruction, size_t size)
{
	begin_by_hand(NULL, 0);
	put(&fde, ADVANCE | 1);
	put_bytes(&fde, instruction, size);
	put_length(&fde);
	expect(0, INCSTACK_RULE_SP, 8, 8, 0);
	expect_none(1, false);
}

/* Products and differences that no signed number holds: refused, without undefined behaviour. */
START_TEST(offsets_beyond_all_numbers)
{
	static const unsigned char codes[] = {OFFSET_EXTENDED, OFFSET_EXTENDED_SIGNED,
					      DEF_CFA_SIGNED, DEF_CFA_OFFSET_SIGNED};
	for (size_t i = 0; i < sizeof(codes); i++)
		for (int is_least = 0; is_least < 2; is_least++) {
			make(NULL, 0);
			put(&fde, codes[i]);
			if (codes[i] != DEF_CFA_OFFSET_SIGNED)
				put(&fde, codes[i] == DEF_CFA_SIGNED ? SP : RA);
			put_signed(&fde, is_least ? INT64_MIN : INT64_MAX);
			put_length(&fde);
			struct incstack_rule rule;
			ck_assert(!incstack__native_fde_rule(fde.start, (uintptr_t)made, &rule));
		}
}
END_TEST

/* The index of a file may begin at any address. */
START_TEST(index_at_an_odd_address)
{
	_Alignas(8) unsigned char bytes[32] = {0};
	const unsigned char start[] = {1, 0x1b, 0x03, 0x3b};
	const uint32_t count = 2;
	const int32_t pairs[] = {0, 100, 64, 200};
	unsigned char *header = bytes + 1;
	memcpy(header, start, sizeof(start));
	memcpy(header + 8, &count, sizeof(count));
	memcpy(header + 12, pairs, sizeof(pairs));
	ck_assert_ptr_eq(incstack__native_entry_of(header, (uintptr_t)header + 10), header + 100);
	ck_assert_ptr_eq(incstack__native_entry_of(header, (uintptr_t)header + 70), header + 200);
}
END_TEST

START_TEST(vector_registers)
{
	check_vector(PROGRAM(OFFSET | (RA + 1), 2));
	check_vector(PROGRAM(OFFSET_EXTENDED, RA + 1, 2));
	check_vector(PROGRAM(OFFSET_EXTENDED_SIGNED, 32, 2));
	check_vector(PROGRAM(RESTORE | (RA + 1)));
	check_vector(PROGRAM(RESTORE_EXTENDED, 32));
	check_vector(PROGRAM(SAME_VALUE, RA + 1));
	check_vector(PROGRAM(UNDEFINED, RA + 1));
	check_vector(PROGRAM(EXPRESSION, RA + 1, 2, 0x77, 0));
}
END_TEST

/* The caller exists, whatever its frame pointer is: no rule, and no end of the stack. */
START_TEST(undefined_frame_pointer)
{
	make(PROGRAM(UNDEFINED, FP, ADVANCE | 1, UNDEFINED, RA));
	expect_none(0, false);
	expect(1, INCSTACK_RULE_END, 0, 0, 0);
}
END_TEST

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

/* libunwind takes the CFA as the caller's stack pointer, whatever the rule for it is. */
START_TEST(stack_pointer_elsewhere)
{
	make(PROGRAM(OFFSET | SP, 2, ADVANCE | 1, SAME_VALUE, SP, ADVANCE | 1, UNDEFINED, SP));
	expect_none(0, true);
	expect(1, INCSTACK_RULE_SP, 8, 8, 0);
	expect_none(2, true);
}
END_TEST

/* Nothing in a CIE is at another address than the function's first. */
START_TEST(advance_in_cie)
{
	struct incstack_rule own, other;
	bool other_knows;

	begin_by_hand(PROGRAM(ADVANCE | 1));
	put_length(&fde);
	for (size_t i = 0; i < CODE_BYTES; i++)
		ck_assert(!ask_both(i, &own, &other, &other_knows));
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

/* The address space that libunwind is made to step in has the tables of one address. */
START_TEST(another_address)
{
	unw_addr_space_t space = incstack__native_space();
	struct {
		uintptr_t address;
		bool found;
		uintptr_t page;
	} lookup = {(uintptr_t)made, false, 0};
	unw_proc_info_t info;

	make(PROGRAM(NOP));
	unw_accessors_t *accessors = unw_get_accessors(space);
	ck_assert_int_eq(
		accessors->find_proc_info(space, (uintptr_t)find_entries, &info, 0, &lookup),
		-UNW_ENOINFO);
	ck_assert(!lookup.found);
	ck_assert_int_eq(accessors->find_proc_info(space, (uintptr_t)made, &info, 0, &lookup), 0);
	ck_assert(lookup.found);
}
END_TEST

/* The entry holds its own addresses and no other. */
START_TEST(bounds)
{
	const uintptr_t low = (uintptr_t)made;
	struct incstack_rule rule = {.kind = 77};

	make(PROGRAM(NOP));
	ck_assert(!incstack__native_fde_rule(fde.start, low - 1, &rule));
	ck_assert(!incstack__native_fde_rule(fde.start, low + CODE_BYTES, &rule));
	ck_assert_uint_eq(rule.kind, 77);
	ck_assert(incstack__native_fde_rule(fde.start, low, &rule));
	ck_assert(incstack__native_fde_rule(fde.start, low + CODE_BYTES - 1, &rule));
	ck_assert_uint_eq(rule.kind, INCSTACK_RULE_SP);
}
END_TEST

static bool has_rule(void)
{
	struct incstack_rule rule;

	return incstack__native_fde_rule(fde.start, (uintptr_t)made, &rule);
}

/* The data that the lengths inside an entry cover end with the entry. libunwind reads on. */
START_TEST(lengths_beyond_the_entry)
{
	enum { CIE_DATA = 15, FDE_DATA = 16 }; /* the lengths of the augmentation data */

	make(PROGRAM(NOP, NOP));
	fde.start[FDE_DATA] = 2;
	ck_assert(has_rule());
	fde.start[FDE_DATA] = 3;
	ck_assert(!has_rule());
	fde.start[FDE_DATA] = 0;
	ck_assert(has_rule());
	ck_assert_uint_eq(cie.start[CIE_DATA], 1);
	cie.start[CIE_DATA] = (unsigned char)(cie.at - cie.start - CIE_DATA);
	ck_assert(!has_rule());
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("native CFI");
	TCase *tables = tcase_create("tables");

	tcase_add_test(tables, nested_states);
	tcase_add_test(tables, too_many_states);
	tcase_add_test(tables, rules_of_the_cie_restored);
	tcase_add_test(tables, large_offsets);
	tcase_add_test(tables, offsets_beyond_all_numbers);
	tcase_add_test(tables, index_at_an_odd_address);
	tcase_add_test(tables, vector_registers);
	tcase_add_test(tables, undefined_frame_pointer);
	tcase_add_test(tables, expressions);
	tcase_add_test(tables, expressions_of_the_cfa);
	tcase_add_test(tables, expression_of_the_pc);
	tcase_add_test(tables, computed_then_changed);
	tcase_add_test(tables, stack_pointer_elsewhere);
	tcase_add_test(tables, advance_in_cie);
	tcase_add_test(tables, signal_frames);
	tcase_add_test(tables, another_address);
	tcase_add_test(tables, bounds);
	tcase_add_test(tables, lengths_beyond_the_entry);
	suite_add_tcase(suite, tables);
	return suite;
}

int main(void)
{
	find_entries();
	return run_suite(suite());
}
