/* SPDX-License-Identifier: MIT
 *
 * Tests the names of C++ and Rust functions, and names that somebody has made to keep the reader busy.
 */
#include "tool/report/demangle.c"

#include <check.h>
#include <stdio.h>

#include "run_suite.h"

static const struct {
	const char *name;
	const char *text; /* null: it is not mangled */
} names[] = {
	{"_Z3foov", "foo()"},
	{"_ZN5store5TableC2Em", "store::Table::Table(unsigned long)"},
	{"_ZN3std2rt10lang_start17h0123456789abcdefE", "std::rt::lang_start"},
	{"_ZN4core3ops8function6FnOnce40call_once$u7b$$u7b$vtable.shim$u7d$$u7d$"
	 "17h0123456789abcdefE",
	 "core::ops::function::FnOnce::call_once{{vtable.shim}}"},
	{"_RNvCs4fqI2P2rA04_7mycrate3foo", "mycrate::foo"},
	{"_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"},
	{"main", NULL},
	{"_start", NULL},
	{"_", NULL},
	{"", NULL},
	{"_Z", NULL},
	{"_R", NULL},
	{"_RNvC", NULL},
	{"_ZN", NULL},
};

START_TEST(each_name)
{
	char text[256] = "";
	const bool is_mangled = tool_demangle(names[_i].name, text, sizeof(text));

	ck_assert_msg(is_mangled == (names[_i].text != NULL), "%s: %s", names[_i].name, text);
	if (is_mangled)
		ck_assert_str_eq(text, names[_i].text);
}
END_TEST

START_TEST(cut_off)
{
	char text[8];

	ck_assert(tool_demangle("_Z3foov", text, 6));
	ck_assert_str_eq(text, "foo()");
	ck_assert(tool_demangle("_Z3foov", text, 5));
	ck_assert_str_eq(text, "foo(");
	ck_assert(tool_demangle("_RNvCs4fqI2P2rA04_7mycrate3foo", text, 8));
	ck_assert_str_eq(text, "mycrate");
}
END_TEST

/* Writes a number as Rust's names have it. */
static char *number(char *at, unsigned value)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (value > 0) {
		if (value > 62)
			*at++ = digits[(value - 1) / 62];
		*at++ = digits[(value - 1) % 62];
	}
	*at++ = '_';
	return at;
}

/* A pair of a pair of a pair, forty times, each with twice the same. */
START_TEST(endless_rust)
{
	enum { PAIRS = 40 };
	static const char prefix[] = "_RINvC1a1f";
	char name[1024];
	char text[4096];
	char *at = name + sprintf(name, "%s", prefix);
	const unsigned first = (unsigned)(sizeof(prefix) - 1 - 2);

	memset(at, 'T', PAIRS);
	at += PAIRS;
	*at++ = 'u';
	for (unsigned i = PAIRS; i-- > 0;) {
		*at++ = 'B';
		at = number(at, first + i + 1);
		*at++ = 'E';
	}
	*at++ = 'E';
	*at = 0;
	ck_assert(tool_demangle(name, text, sizeof(text)));
	ck_assert_uint_eq(strlen(text), sizeof(text) - 1);
	ck_assert_int_eq(strncmp(text, "a::f::<((((", 11), 0);
}
END_TEST

/* The same in C++: f(p<x, x>), where x is p<y, y>, and so on. Each p<...> becomes a substitution. */
/* libiberty tries each of these twice, one inside of the other, before it prints anything. */
START_TEST(endless_conversions)
{
	enum { DEPTH = 60 };
	char name[1024];
	char text[256];
	char *at = name + sprintf(name, "_Z");

	for (int i = 0; i < DEPTH; i++)
		at += sprintf(at, "cvT_IL_Z");
	at += sprintf(at, "1f");
	for (int i = 0; i < DEPTH; i++)
		at += sprintf(at, "EE");
	ck_assert(!tool_demangle(name, text, sizeof(text)));
	ck_assert(tool_demangle("_ZN1acviEv", text, sizeof(text)));
	ck_assert_str_eq(text, "a::operator int()");
}
END_TEST
START_TEST(endless_packs)
{
	char name[1024];
	char text[256];
	char *at = name + sprintf(name, "_Z1fDp1aI");

	for (int i = 0; i < 40; i++)
		at += sprintf(at, "S%d_", i % 10);
	sprintf(at, "E");
	ck_assert(!tool_demangle(name, text, sizeof(text)));
	ck_assert(tool_demangle("_Z1fIJiiEEvDpT_", text, sizeof(text)));
	ck_assert_str_eq(text, "void f<int, int>(int, int)");
}
END_TEST
START_TEST(endless_cpp)
{
	enum { PAIRS = 30 };
	char name[1024];
	char text[4096];
	char *at = name + sprintf(name, "_Z1f");

	for (int i = 0; i < PAIRS; i++)
		at += sprintf(at, "%s", i == 0 ? "1pI" : "S_I");
	*at++ = 'i';
	*at++ = 'i';
	*at++ = 'E';
	for (int i = 0; i < PAIRS - 1; i++)
		at += sprintf(at, "S%cE", i == 0 ? '0' : i <= 10 ? '0' + i : 'A' + i - 11);
	*at = 0;
	if (tool_demangle(name, text, sizeof(text)))
		ck_assert_uint_eq(strlen(text), sizeof(text) - 1);
}
END_TEST

START_TEST(long_names)
{
	static char name[20000];
	char text[64];

	memset(name, 'P', sizeof(name) - 1);
	memcpy(name, "_Z1f", 4);
	ck_assert(!tool_demangle(name, text, sizeof(text)));
	name[8000] = 'i';
	name[8001] = 0;
	(void)tool_demangle(name, text, sizeof(text));
	memset(name, 'R', 8000);
	memcpy(name, "_RINvC1a1f", 10);
	(void)tool_demangle(name, text, sizeof(text));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("demangle");
	TCase *tests = tcase_create("demangle");

	tcase_add_loop_test(tests, each_name, 0, sizeof(names) / sizeof(names[0]));
	tcase_add_test(tests, cut_off);
	tcase_add_test(tests, endless_rust);
	tcase_add_test(tests, endless_conversions);
	tcase_add_test(tests, endless_packs);
	tcase_add_test(tests, endless_cpp);
	tcase_add_test(tests, long_names);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
