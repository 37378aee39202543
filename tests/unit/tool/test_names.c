/* SPDX-License-Identifier: MIT
 *
 * Tests how names that others choose are printed: nothing that controls a terminal or reorders text gets
 * through, everything else does, and columns are counted as they are printed.
 */
#include "tool/names.c"

#include <check.h>

#include "run_suite.h"

static const char *shown(const char *name, size_t bytes)
{
	static char text[512];
	FILE *out = fmemopen(text, sizeof(text), "w");

	ck_assert_ptr_nonnull(out);
	memset(text, 0, sizeof(text));
	tool_name_put(name, bytes, out);
	fclose(out);
	return text;
}

static const char *clipped(const char *name, size_t width, char cut)
{
	static char text[512];
	FILE *out = fmemopen(text, sizeof(text), "w");

	ck_assert_ptr_nonnull(out);
	memset(text, 0, sizeof(text));
	tool_name_clip(name, width, cut, out);
	fclose(out);
	return text;
}

static const struct {
	const char *name, *shown;
} names[] = {
	{"", ""},
	{"std::map<int, char*>::operator[](int&&)", "std::map<int, char*>::operator[](int&&)"},
	{"App\\Controller", "App\\Controller"},
	{"größe 大小 имя 🙂 é", "größe 大小 имя 🙂 é"},
	/* C0 and delete */
	{"\033]0;title\007x", "\\x1b]0;title\\x07x"},
	{"\033[31mred", "\\x1b[31mred"},
	{"a\nincstack: b\r\t\v\f\b", "a\\x0aincstack: b\\x0d\\x09\\x0b\\x0c\\x08"},
	{"\x01\x0e\x0f\x7f", "\\x01\\x0e\\x0f\\x7f"},
	/* C1, as UTF-8 and as bytes */
	{"\xc2\x9b"
	 "31m",
	 "\\u{9b}31m"},
	{"\xc2\x80\xc2\x9f\xc2\xa0x", "\\u{80}\\u{9f}\xc2\xa0x"},
	{"\x9b"
	 "31m\x90\x9d",
	 "\\x9b31m\\x90\\x9d"},
	/* directions, separators, what is invisible */
	{"a\u202eb\u202a\u202b\u202c\u202d", "a\\u{202e}b\\u{202a}\\u{202b}\\u{202c}\\u{202d}"},
	{"\u2066\u2067\u2068\u2069", "\\u{2066}\\u{2067}\\u{2068}\\u{2069}"},
	{"\u200e\u200f\u061c", "\\u{200e}\\u{200f}\\u{61c}"},
	{"\u2028\u2029", "\\u{2028}\\u{2029}"},
	{"ma\u200bin\ufeff\u00ad\u2060", "ma\\u{200b}in\\u{feff}\\u{ad}\\u{2060}"},
	{"\U000e0041\U000e007f", "\\u{e0041}\\u{e007f}"},
	/* no UTF-8: alone, cut off, too long, surrogates, beyond Unicode */
	{"\xff\xfe\x80", "\\xff\\xfe\\x80"},
	{"\xc3", "\\xc3"},
	{"\xe2\x82", "\\xe2\\x82"},
	{"\xf0\x9f\x99", "\\xf0\\x9f\\x99"},
	{"\xc3(", "\\xc3("},
	{"\xc0\x9b\xc1\x9b", "\\xc0\\x9b\\xc1\\x9b"},
	{"\xe0\x80\x9b", "\\xe0\\x80\\x9b"},
	{"\xf0\x80\x80\x9b", "\\xf0\\x80\\x80\\x9b"},
	{"\xed\xa0\x80\xed\xbf\xbf", "\\xed\\xa0\\x80\\xed\\xbf\\xbf"},
	{"\xf4\x90\x80\x80\xf5\xf8\x88", "\\xf4\\x90\\x80\\x80\\xf5\\xf8\\x88"},
	{"\xe2\x80", "\\xe2\\x80"},
	{"\xc2\033[m", "\\xc2\\x1b[m"}, /* the escape is no part of a character */
	{"\xe2\x80\033", "\\xe2\\x80\\x1b"},
};

START_TEST(each_name)
{
	const char *name = names[_i].name;

	ck_assert_str_eq(shown(name, strlen(name)), names[_i].shown);
	ck_assert_str_eq(tool_name(name), names[_i].shown);
	ck_assert_str_eq(clipped(name, 200, '>'), names[_i].shown);
	ck_assert_str_eq(clipped(name, 200, '<'), names[_i].shown);
	ck_assert_str_eq(tool_name(tool_name(name)), names[_i].shown);
}
END_TEST

START_TEST(zero_bytes)
{
	ck_assert_str_eq(shown("a\0b", 3), "a\\x00b");
}
END_TEST

/* Only the ranges of is_control, and nothing else, of all characters. */
START_TEST(all_bytes_and_pairs)
{
	for (unsigned first = 0; first < 256; first++)
		for (unsigned second = 0; second < 256; second++) {
			const char name[] = {(char)first, (char)second, 'm'};
			const char *text = shown(name, sizeof(name));

			for (const char *at = text; *at != 0; at++) {
				ck_assert((unsigned char)*at >= 0x20 && *at != 0x7f);
				ck_assert(memcmp(at, "\xc2\x9b", 2) != 0);
			}
		}
}
END_TEST

START_TEST(widths)
{
	ck_assert_str_eq(clipped("abcdefgh", 8, '>'), "abcdefgh");
	ck_assert_str_eq(clipped("abcdefghi", 8, '>'), "abcde...");
	ck_assert_str_eq(clipped("abcdefghi", 8, '<'), "...efghi");
	ck_assert_str_eq(clipped("äöüßäöüßä", 8, '>'), "äöüßä...");
	ck_assert_str_eq(clipped("äöüßäöüßä", 8, '<'), "...äöüßä");
	/* An escape has four columns; one that does not fit is left out. */
	ck_assert_str_eq(clipped("ab\033cd", 8, '>'), "ab\\x1bcd");
	ck_assert_str_eq(clipped("ab\033cde", 8, '>'), "ab...");
	ck_assert_str_eq(clipped("abc\033\033", 10, '<'), "...\\x1b");
	ck_assert_str_eq(clipped("abcdef", 3, '>'), "...");
	ck_assert_str_eq(clipped("abcdef", 0, '<'), "...");
}
END_TEST

START_TEST(valid_utf8)
{
	char text[64];
	size_t length = tool_name_valid("a\xff\033\xc2\x9b\xc3\xa4", text, sizeof(text));

	ck_assert_uint_eq(length, 10);
	ck_assert_mem_eq(text, "a\\xff\033\xc2\x9b\xc3\xa4", length);
	ck_assert_uint_eq(tool_name_valid("\xc3\xa4\xc3\xa4", text, 3), 2);
	ck_assert_uint_eq(tool_name_valid("\xff", text, 3), 0);
	ck_assert_uint_eq(tool_name_valid("x", text, 0), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("names");
	TCase *tests = tcase_create("names");

	tcase_add_loop_test(tests, each_name, 0, sizeof(names) / sizeof(names[0]));
	tcase_add_test(tests, zero_bytes);
	tcase_add_test(tests, all_bytes_and_pairs);
	tcase_add_test(tests, widths);
	tcase_add_test(tests, valid_utf8);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
