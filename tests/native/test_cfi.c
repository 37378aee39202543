/* SPDX-License-Identifier: MIT
 *
 * Tests unwind tables that no compiler writes: the reader of .eh_frame and libunwind must agree
 * at each address of a function whose CIE and FDE are written by hand.
 */
#include <incstack/native.h>

#include "cfi_by_hand.h"
#include "elf/unwind_index.h"
#include "../unit/run_suite.h"

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
	ck_assert_ptr_eq(incstack__elf_unwind_entry((const void *)header, (uintptr_t)header + 10),
			 header + 100);
	ck_assert_ptr_eq(incstack__elf_unwind_entry((const void *)header, (uintptr_t)header + 70),
			 header + 200);
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
	tcase_add_test(tables, stack_pointer_elsewhere);
	tcase_add_test(tables, advance_in_cie);
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
