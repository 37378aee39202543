/* SPDX-License-Identifier: MIT
 *
 * Tests that each kind of stacks has all functions, and the modes that are documented.
 */
#include <string.h>

#include "trace/kind.h"
#include "run_suite.h"

static const struct incstack__stack_kind *const kinds[] = {
	&incstack__kind_machine, &incstack__kind_anywhere, &incstack__kind_embedder};

/* From the first function on, a kind consists of pointers to functions. */
START_TEST(functions)
{
	const size_t first = offsetof(struct incstack__stack_kind, takes_top);
	const char *kind = (const char *)kinds[_i];

	for (size_t at = first; at < sizeof(*kinds[_i]); at += sizeof(void *)) {
		void *function;

		memcpy(&function, kind + at, sizeof(function));
		ck_assert_msg(function != NULL, "the member at %zu is missing", at);
	}
}
END_TEST

START_TEST(modes)
{
	static const char can[][4] = {
		/* patch, validate, full, embedder */
		{1, 1, 1, 0},
		{0, 0, 1, 0},
		{0, 0, 1, 1},
	};

	for (uint32_t mode = INCSTACK_MODE_PATCH; mode <= INCSTACK_MODE_EMBEDDER; mode++)
		ck_assert_int_eq(kind_has(kinds[_i], mode), can[_i][mode]);
	ck_assert(kind_has(kinds[_i], kinds[_i]->mode));
	ck_assert_int_eq(kinds[_i]->slow_reasons, _i == 0 ? 0 : SLOW_WALK);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kinds of stacks");
	TCase *tables = tcase_create("tables");
	const int count = sizeof(kinds) / sizeof(kinds[0]);

	tcase_add_loop_test(tables, functions, 0, count);
	tcase_add_loop_test(tables, modes, 0, count);
	suite_add_tcase(suite, tables);
	return run_suite(suite);
}
