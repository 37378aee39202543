/* SPDX-License-Identifier: MIT
 *
 * Tests patterns for names, and what names say about functions.
 */
#include <string.h>

#include <check.h>

#include "profile/allocators.h"
#include "profile/pattern.h"
#include "run_suite.h"

static bool is_one(const char *name)
{
	return incstack__is_allocator(name, strlen(name));
}

static bool sounds(const char *name)
{
	return incstack__sounds_like_allocator(name, strlen(name));
}

START_TEST(allocators_are_known_by_name)
{
	static const char *const yes[] = {"malloc",
					  "operator new(unsigned long)",
					  "operator new[](unsigned long)",
					  "xmalloc",
					  "xmalloc.constprop.0",
					  "zmalloc_usable",
					  "os::malloc(unsigned long, MEMFLAGS)",
					  "CHeapObj<(MEMFLAGS)7>::operator new(unsigned long)",
					  "Perl_safesysmalloc",
					  "g_malloc0_n",
					  "PyMem_RawMalloc",
					  "je_malloc",
					  "malloc@plt",
					  "std::allocator<char>::allocate(unsigned long)",
					  "__gnu_cxx::new_allocator<std::pair<int (*)(char), long> "
					  ">::allocate(unsigned long, "
					  "void const*)",
					  "alloc::alloc::exchange_malloc::h0123456789abcdef",
					  "__rust_alloc",
					  "runtime.mallocgc"};
	static const char *const no[] = {"main",
					 "mallocate",
					 "renew",
					 "session_alloc",
					 "operator",
					 "os::mallocs",
					 "operator delete(void*)",
					 "free",
					 "",
					 "my_xmalloc",
					 "runtime.malloc"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		ck_assert_msg(is_one(yes[i]), "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		ck_assert_msg(!is_one(no[i]), "%s", no[i]);
}
END_TEST

START_TEST(words_of_names_are_found)
{
	static const char *const yes[] = {"my_alloc",
					  "HeapAlloc",
					  "mallocWithAlarm",
					  "bufStrdup",
					  "pool_alloc_page",
					  "a::b<c::d>::allocate<int>(int)",
					  "void* a::tryAlloc<x>(long)",
					  "yalloc.part.0",
					  "alloc0"};
	static const char *const no[] = {"allocation",
					 "deallocate",
					 "dealloc",
					 "callocated",
					 "alloc::boxed::new",
					 "allocator<int>::construct(int)",
					 "main",
					 "locate",
					 "",
					 "f(alloc)",
					 "a_very_long_word_without_allocationalloc"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		ck_assert_msg(sounds(yes[i]), "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		ck_assert_msg(!sounds(no[i]), "%s", no[i]);
}
END_TEST

static bool whole(const char *pattern, const char *text)
{
	return incstack__pattern_matches(pattern, text, strlen(text));
}

START_TEST(patterns_match_whole_texts)
{
	ck_assert(whole("abc", "abc") && !whole("abc", "abcd") && !whole("abc", "ab"));
	ck_assert(whole("*", "") && whole("*", "x") && whole("", "") && !whole("", "x"));
	ck_assert(whole("a*c", "abcbc") && !whole("a*c", "abcb") && whole("a**c", "ac"));
	ck_assert(whole("*b*d*", "abcd") && !whole("*d*b*", "abcd") && whole("*aab", "aaab"));
	ck_assert(incstack__pattern_function("f", "f(int)", 6));
	ck_assert(!incstack__pattern_function("f", "ff(int)", 7));
	ck_assert(incstack__pattern_function("f", "f.isra.0", 8));
	ck_assert(!incstack__pattern_function("f", "f.more", 6));
	ck_assert(incstack__pattern_function("a<b>::operator()", "a<b>::operator()(int)", 21));
	ck_assert(incstack__pattern_function("(anonymous namespace)::f",
					     "(anonymous namespace)::f(int)", 29));
	ck_assert(incstack__pattern_function("a::operator<", "a::operator<(int)", 17));
}
END_TEST

/* What the compiler adds is no part of the name; what only begins like it is. */
START_TEST(suffixes)
{
	static const struct {
		const char *name;
		size_t base;
	} all[] = {{"sort.part.0", 4},
		   {"sort.partition", 14},
		   {"worker.cold", 6},
		   {"worker.cold_start", 17},
		   {"f.constprop.0.isra.1", 1},
		   {"f.llvm.123", 1},
		   {"f.part1", 1},
		   {"a.b", 3}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ck_assert_msg(incstack__function_base(all[i].name, strlen(all[i].name)) ==
				      all[i].base,
			      "%s", all[i].name);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("names");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, suffixes);
	tcase_add_test(tests, allocators_are_known_by_name);
	tcase_add_test(tests, words_of_names_are_found);
	tcase_add_test(tests, patterns_match_whole_texts);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
