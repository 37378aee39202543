/* SPDX-License-Identifier: MIT
 *
 * Entries of .eh_frame that a test writes by hand, and the rule that both readers must find in them.
 */
#ifndef CFI_BY_HAND_H
#define CFI_BY_HAND_H

#include <check.h>

#include "cfi_made.h"

#define PROGRAM(...) \
	(const unsigned char[]){__VA_ARGS__}, sizeof((const unsigned char[]){__VA_ARGS__})

/* The usual CIE, with more behind what compilers write there. */
static inline void begin_by_hand(const unsigned char *more, size_t size)
{
	static const unsigned char usual[] = {DEF_CFA, SP, 8, OFFSET | RA, 1};

	begin_cie(&common);
	put_bytes(&cie, usual, sizeof(usual));
	put_bytes(&cie, more, size);
	begin_fde(&common);
}

static inline void make(const unsigned char *program, size_t size)
{
	begin_by_hand(NULL, 0);
	put_bytes(&fde, program, size);
	put_length(&fde);
}

/* Both readers must find this rule; for the kinds END and SIGNAL the rest is 0. */
static inline void expect(size_t at, uint32_t kind, int32_t cfa, unsigned ra, unsigned fp)
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

static inline void expect_none(size_t at, bool other_knows_expected)
{
	struct incstack_rule own, other;
	bool other_knows;

	ck_assert(!ask_both(at, &own, &other, &other_knows));
	ck_assert_int_eq(other_knows, other_knows_expected);
}

#endif
