/* SPDX-License-Identifier: MIT
 *
 * The rules that the recorder gives to the core: which returns may not be intercepted, and what is
 * not looked up in the handler of a tick. Without the rest of the recorder.
 */
#include <check.h>
#include <string.h>

#include "recorder/code/rule.c"

#include "run_suite.h"

struct incstack__recording incstack__recording;
INCSTACK__TLS struct incstack__record_local incstack__record_local;

static int native_error, forbids, knows = 1;

bool incstack__record_host_forbids_barriers(uintptr_t address)
{
	(void)address;
	return forbids;
}

bool incstack__record_host_knows(uintptr_t address)
{
	(void)address;
	return knows;
}

int incstack__record_pointer_rule(uintptr_t address, struct incstack_rule *rule)
{
	(void)address;
	(void)rule;
	return INCSTACK_EUNWIND;
}

static int find_native(void *context, uintptr_t address, struct incstack_rule *rule)
{
	(void)context;
	if (native_error == 0)
		*rule = (struct incstack_rule){.kind = (uint8_t)address};
	return native_error;
}

const struct incstack_embedder *incstack_native_embedder(void)
{
	static const struct incstack_embedder embedder = {.size = sizeof(embedder),
							  .code.find_rule_quickly = find_native};
	return &embedder;
}

START_TEST(rules_without_barriers)
{
	struct incstack_rule rule;

	for (int by = 0; by < 3; by++) {
		forbids = by == 1;
		incstack__recording.barriers_forbidden = by == 2;
		for (uintptr_t kind = 0; kind <= INCSTACK_RULE_END; kind++) {
			memset(&rule, 0, sizeof(rule));
			ck_assert_int_eq(incstack__record_find_rule(NULL, kind, &rule), 0);
			ck_assert_int_eq((rule.flags & INCSTACK_RULE_NO_BARRIER) != 0,
					 by && kind <= INCSTACK_RULE_FP_DEREF);
		}
	}
	native_error = INCSTACK_EUNWIND;
	memset(&rule, 0, sizeof(rule));
	ck_assert_int_eq(incstack__record_find_rule(NULL, 1, &rule), INCSTACK_EUNWIND);
	ck_assert_uint_eq(rule.flags, 0);
}
END_TEST

/* In the handler of a tick no object is inspected for the first time, and no other thread may look
 * up a rule later that is missing there. */
START_TEST(rules_in_a_handler)
{
	struct incstack_rule rule;

	knows = 0;
	ck_assert_int_eq(incstack__record_find_rule(NULL, 1, &rule), 0);
	incstack__record_local.handling = 1;
	ck_assert_int_eq(incstack__record_find_rule(NULL, 1, &rule), INCSTACK_EBUSY);
	knows = 1;
	ck_assert_int_eq(incstack__record_find_rule(NULL, 1, &rule), 0);
	native_error = INCSTACK_EUNWIND;
	ck_assert_int_eq(incstack__record_find_rule(NULL, 1, &rule), INCSTACK_EBUSY);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rules of the recorder");
	TCase *tc = tcase_create("rules");

	tcase_add_test(tc, rules_without_barriers);
	tcase_add_test(tc, rules_in_a_handler);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
