/* SPDX-License-Identifier: MIT
 *
 * Tests how long names are shortened: what differs stays visible.
 */
#include "tool/elide.c"

#include <check.h>

#include "run_suite.h"

static const struct {
	const char *name;
	size_t columns;
	const char *text;
} cases[] = {
	{"main", 10, "main"},
	{"f(int, char)", 12, "f(int, char)"},
	{"f(int, char)", 11, "f(...)"},
	{"f()", 3, "f()"},
	{"std::map<int, std::vector<int> >::find(int const&)", 46, "std::map<...>::find(...)"},
	{"a<b<cccccc>, d>::e(f<gggggg>)", 25, "a<b<...>, d>::e(f<...>)"},
	{"a<b<cccccc>, d>::e(f<gggggg>)", 20, "a<...>::e(...)"},
	{"a<bbbbbbbb>::operator<<(int)", 23, "a<...>::operator<<(...)"},
	{"a<bbbbbbbb>::operator()(int) const", 29, "a<...>::operator()(...) const"},
	{"a<bbbbbbbb>::operator->()", 20, "a<...>::operator->()"},
	{"<alloc::vec::Vec<T> as core::ops::Drop>::drop", 20, "<...>::drop"},
	{"f(}", 3, "f(}"},
	{">>>f", 4, ">>>f"},
	{"v8::internal::AllocAtLeastWithRetry(long)", 30, "...:AllocAtLeastWithRetry(...)"},
	{"abcdefgh", 5, "...gh"},
	{"abcdefgh", 2, "..."},
};

START_TEST(each)
{
	char *text = tool_elide(cases[_i].name, NULL, 0, cases[_i].columns);

	ck_assert_str_eq(text, cases[_i].text);
	free(text);
}
END_TEST

/* Both would be vector<...>::push_back(...). */
START_TEST(differences)
{
	static const char *const names[] = {
		"std::vector<std::pair<aaaaaaaaaa, int> >::push_back(int)",
		"std::vector<std::pair<aaaaaaaaaa, char> >::push_back(int)",
		"other",
	};
	char *first = tool_elide(names[0], names, 3, 30);
	char *second = tool_elide(names[1], names, 3, 30);

	ck_assert_str_eq(first, "...aaaaaa, int> >::push_back(int)");
	ck_assert_str_eq(second, "...aaaaaa, char> >::push_back(int)");
	free(first);
	free(second);
	first = tool_elide(names[2], names, 3, 30);
	ck_assert_str_eq(first, "other");
	free(first);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("elide");
	TCase *tests = tcase_create("elide");

	tcase_add_loop_test(tests, each, 0, sizeof(cases) / sizeof(cases[0]));
	tcase_add_test(tests, differences);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
