/* SPDX-License-Identifier: MIT
 *
 * Tests the packing of an unwind rule into one word: it is unpacked as the embedder gave it, or
 * refused.
 */
#include <stdlib.h>

#include "trace/stack.h"
#include "trace/rule.h"
#include "run_suite.h"

static struct incstack_rule said;

static int say(void *context, uintptr_t address, struct incstack_rule *rule)
{
	(void)context;
	(void)address;
	*rule = said;
	return 0;
}

static void *allocate(void *context, size_t bytes)
{
	(void)context;
	return malloc(bytes);
}

static void release(void *context, void *memory, size_t bytes)
{
	(void)context;
	(void)bytes;
	free(memory);
}

static struct incstack_runtime *create(void)
{
	const struct incstack_embedder embedder = {.size = sizeof(embedder),
						   .code.find_rule = say,
						   .memory.allocate = allocate,
						   .memory.release = release};
	const struct incstack_options options = {
		.size = sizeof(options), .distance = 1, .embedder = &embedder};
	struct incstack_runtime *rt = NULL;

	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
	return rt;
}

/* Returns whether a walk can use the rule, which must then be the given one. */
static bool is_kept(struct incstack_runtime *rt, struct incstack_rule rule)
{
	static uintptr_t address = 4096; /* a new one each time */

	said = rule;
	const packed_rule word = incstack__rule_learn(rt, address++);
	if (!rule_known(word))
		return false;
	const struct incstack_rule kept = incstack__rule_unpack(word);
	ck_assert_uint_eq(kept.kind, rule.kind);
	ck_assert_int_eq(kept.cfa_offset, rule.cfa_offset);
	ck_assert_uint_eq(kept.ra_offset, rule.ra_offset);
	ck_assert_uint_eq(kept.fp_offset, rule.fp_offset);
	ck_assert_uint_eq(kept.flags, rule.flags);
	return true;
}

static struct incstack_rule rule_of(uint32_t kind, int32_t cfa, uint16_t ra, uint16_t fp)
{
	return (struct incstack_rule){kind, cfa, ra, fp, 0};
}

START_TEST(return_slots)
{
	struct incstack_runtime *rt = create();

	for (uint32_t kind = INCSTACK_RULE_SP; kind <= INCSTACK_RULE_FP_DEREF; kind++) {
		ck_assert(is_kept(rt, rule_of(kind, 4096, 8, 16)));
		ck_assert(is_kept(rt, rule_of(kind, 4096, 2040, 16)));
		ck_assert(!is_kept(rt, rule_of(kind, 4096, 2048, 16)));
		ck_assert(!is_kept(rt, rule_of(kind, 4096, 2056, 0)));
		ck_assert(!is_kept(rt, rule_of(kind, 4096, 65528, 0)));
		ck_assert(!is_kept(rt, rule_of(kind, 4096, 12, 0)));
	}
	ck_assert(!is_kept(rt, rule_of(INCSTACK_RULE_NONE, 16, 8, 0)));
	for (uint32_t kind = INCSTACK_RULE_END + 1; kind < 40; kind++)
		ck_assert(!is_kept(rt, rule_of(kind, 16, 8, 0)));
	incstack_runtime_destroy(rt);
}
END_TEST

/* Rules around each bound of the two forms that a word can have. */
START_TEST(all_bounds)
{
	static const int32_t cfas[] = {0,
				       8,
				       16,
				       4,
				       -8,
				       1 << 20,
				       (1 << 21) - 8,
				       1 << 21,
				       (1 << 21) + 8,
				       INT32_MAX - 7,
				       INT32_MIN};
	static const uint16_t ras[] = {0, 8, 16, 2040, 2048, 65528, 9};
	static const uint16_t fps[] = {0, 8, 16, 2032, 2040, 2048, 65528, 20};
	struct incstack_runtime *rt = create();
	unsigned kept = 0, all = 0;

	for (uint32_t kind = INCSTACK_RULE_SP; kind <= INCSTACK_RULE_END; kind++)
		for (size_t c = 0; c < sizeof(cfas) / sizeof(cfas[0]); c++)
			for (size_t r = 0; r < sizeof(ras) / sizeof(ras[0]); r++)
				for (size_t f = 0; f < sizeof(fps) / sizeof(fps[0]); f++, all++)
					kept += is_kept(rt, rule_of(kind, cfas[c], ras[r], fps[f]));
	/* All rules except those with return slots from 2048 on, or with offsets that are no
	 * multiple of 8. */
	ck_assert_uint_eq(kept * 7 * 8, all * 4 * 7);
	for (uint32_t flags = 1; flags < 16; flags++) {
		struct incstack_rule rule = rule_of(INCSTACK_RULE_SP, 16, 8, 0);

		rule.flags = flags;
		ck_assert(is_kept(rt, rule));
	}
	incstack_runtime_destroy(rt);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rule packing");
	TCase *rules = tcase_create("rules");

	tcase_add_test(rules, return_slots);
	tcase_add_test(rules, all_bounds);
	suite_add_tcase(suite, rules);
	return run_suite(suite);
}
