/* SPDX-License-Identifier: MIT
 *
 * incstack compare, and what all subcommands on profiles take out of them: allocators, other contexts, known
 * leaks.
 */
#include "../unit/run_suite.h"
#include "run_tool.h"

START_TEST(identical_profiles_compare_as_one)
{
	ck_assert_int_eq(
		run("$I convert a.folded a.pb.gz; $I compare --similarity a.folded a.pb.gz"), 0);
	shows("degree of overlap               1.000    1.000    1.000\n");
	shows("hot-edge coverage, A over B     1.000    1.000    1.000\n");
	shows("hot-edge coverage, B over A     1.000    1.000    1.000\n");
	shows("correlation                     1.000    1.000    1.000\n");
	ck_assert_int_eq(run("$I compare a.folded a.pb.gz"), 0);
	ck_assert_str_eq(output,
			 "Before: a.folded\nAfter:  a.pb.gz\n\nsamples: 10 before, 10 after, "
			 "no difference\n");
}
END_TEST

/* Two profiles with the same two kinds in different orders; m and m > x weigh 3:1 in bytes
 * of both, and 1:1 and 1:3 in samples. */
START_TEST(kinds_are_compared_by_name)
{
	static const char kind[] = "{\\\"type\\\":\\\"sampled\\\",\\\"name\\\":\\\"%s\\\","
				   "\\\"unit\\\":\\\"none\\\",\\\"kindUnit\\\":\\\"%s\\\","
				   "\\\"samples\\\":[[0],[0,1]],\\\"weights\\\":[%s]}";
	const char *const files[] = {"a", "alloc",   "bytes", "3,1", "samples", "count", "1,1",
				     "b", "samples", "count", "1,3", "alloc",   "bytes", "300,100"};
	char first[300], second[300];

	for (const char *const *f = files; f < files + 14; f += 7) {
		(void)snprintf(first, sizeof(first), kind, f[1], f[2], f[3]);
		(void)snprintf(second, sizeof(second), kind, f[4], f[5], f[6]);
		ck_assert_int_eq(run("echo \"{\\\"shared\\\":{\\\"frames\\\":[{\\\"name\\\":"
				     "\\\"m\\\"},{\\\"name\\\":\\\"x\\\"}]},\\\"profiles\\\":"
				     "[%s,%s]}\" > %s.speedscope.json",
				     first, second, f[0]),
				 0);
	}
	for (int i = 0; i < 2; i++) {
		const char *order = i ? "b.speedscope.json a.speedscope.json"
				      : "a.speedscope.json b.speedscope.json";

		ck_assert_int_eq(run("$I compare --similarity -k alloc %s", order), 0);
		shows("degree of overlap               1.000    1.000    1.000\n");
		ck_assert_int_eq(run("$I compare --similarity -k samples %s", order), 0);
		shows("degree of overlap               0.750 ");
	}
	/* Without a name: that of the first kind of A. */
	ck_assert_int_eq(run("$I compare --similarity a.speedscope.json b.speedscope.json"), 0);
	shows("degree of overlap               1.000    1.000    1.000\n");
	/* All kinds, each with that of its name. */
	ck_assert_int_eq(run("$I compare a.speedscope.json b.speedscope.json"), 0);
	shows("alloc: 4 B before, 400 B after, difference +396 B (+9900.0%)\n");
	shows("      +297 B         3 B       300 B   m\n");
	shows("samples: 2 before, 4 after, difference +2 (+100.0%)\n");
	shows("          +2           1           3   x\n");
	ck_assert_ptr_null(strstr(output, "           1           1"));
	ck_assert_int_eq(run("$I compare a.speedscope.json a.folded"), 0);
	shows("incstack: not compared: 'alloc', which only the first profile has\n");
	shows("samples: 2 before, 10 after");
	ck_assert_int_eq(run("$I compare --similarity a.speedscope.json a.folded"), 2);
	shows("cannot compare 'alloc' (bytes) with 'samples' (count)");
	ck_assert_int_eq(run("$I compare -k alloc a.speedscope.json a.folded"), 2);
	ck_assert_int_eq(run("sed 's/alloc/x/; s/samples.,.unit/y\",\"unit/' a.speedscope.json > "
			     "c.speedscope.json; $I compare c.speedscope.json a.folded"),
			 2);
	shows("cannot compare 'x' (bytes) with 'samples' (count)");
	ck_assert_int_eq(
		run("sed 's/bytes/count/' a.speedscope.json > c.speedscope.json; $I compare "
		    "a.speedscope.json c.speedscope.json"),
		2);
	shows("cannot compare 'alloc' (bytes) with 'alloc' (count)");
	ck_assert_int_eq(run("$I compare -k samples a.speedscope.json a.folded b.folded"), 0);
}
END_TEST

/* Of a: g 5, größe 3, main 2; of b: g 1, h 9. */
START_TEST(a_comparison_names_what_changed_most)
{
	const char *first, *second;

	ck_assert_int_eq(run("$I compare a.folded b.folded --html d.html"), 0);
	shows("samples: 10 before, 10 after, difference 0 (+0.0%)\n");
	first = strstr(output, "          +9           0           9   h (new)\n");
	second = strstr(output, "          -4           5           1   g \"x\"\n");
	ck_assert_msg(first && second && first < second, "%s", output);
	shows("          -3           3           0   größe (gone)\n");
	shows("          -4           5           1   main > f (int) > g \"x\"\n");
	ck_assert_int_eq(run("grep -c '\"diff\":true' d.html"), 0);
	ck_assert_int_eq(run("$I compare --similarity a.folded b.folded"), 0);
	shows("degree of overlap               0.100");
	ck_assert_int_eq(run("$I compare a.folded a.folded a.folded"), 0);
	shows("3 runs");
	shows("degree of overlap               1.000    1.000    1.000\n");
	ck_assert_int_eq(run("$I compare a.folded"), 2);
	ck_assert_int_eq(run("$I compare --similarity --hot 2 a.folded b.folded"), 2);
	ck_assert_int_eq(run("$I compare --hot 1 a.folded b.folded"), 2);
	shows("--hot has no effect without --similarity");
}
END_TEST

/* b has twice the weights of a, but for one function. */
START_TEST(shares_are_compared_on_request)
{
	ck_assert_int_eq(run("printf 'm;x 10\nm;y 30\nm 10\n' > 1.folded;"
			     "printf 'm;x 20\nm;y 20\nm 60\n' > 2.folded;"
			     "$I compare --normalize 1.folded 2.folded"),
			 0);
	shows("samples: 50 before, 100 after, difference +50 (+100.0%)\n");
	shows("    +40.00%      20.00%      60.00%   m\n");
	shows("    -40.00%      60.00%      20.00%   y\n");
	ck_assert_ptr_null(strstr(output, "x\n"));
	ck_assert_int_eq(run("$I compare --normalize 1.folded 1.folded"), 0);
	shows("no difference of shares\n");
}
END_TEST

/* What is below the threshold is counted. */
START_TEST(small_differences_are_hidden_and_counted)
{
	ck_assert_int_eq(run("$I compare -T 4 a.folded b.folded"), 0);
	shows("          +9           0           9   h (new)\n");
	shows("          -4           5           1   g \"x\"\n");
	shows("  not shown: 2 smaller differences of functions, 0 and -5 together\n");
	ck_assert_ptr_null(strstr(output, "größe"));
	ck_assert_int_eq(run("$I compare -T 50%% a.folded b.folded"), 0);
	shows("  not shown: 3 smaller differences of functions, 0 and -9 together\n");
	ck_assert_int_eq(run("$I compare -n 1 a.folded b.folded"), 0);
	shows("  not shown: 3 smaller differences of contexts, 0 and -9 together\n");
	ck_assert_int_eq(run("$I compare -T 1ms a.folded b.folded"), 2);
	shows("incstack: --threshold: '1ms' is no amount of count\n");
	ck_assert_int_eq(run("$I compare -T -1 a.folded b.folded"), 2);
	shows("incstack: --threshold takes an amount, for example 64k, 10ms, 100 or 5%, not '-1'");
}
END_TEST

START_TEST(growth_beyond_a_limit_has_a_status)
{
	ck_assert_int_eq(run("printf 'm;x 10\n' > 1.folded; printf 'm;x 14\n' > 2.folded"), 0);
	ck_assert_int_eq(run("$I compare --fail-if samples +4 1.folded 2.folded"), 0);
	ck_assert_int_eq(run("$I compare --fail-if samples +40%% 1.folded 2.folded"), 0);
	ck_assert_int_eq(run("$I compare 1.folded --fail-if samples +3 2.folded"), 3);
	shows("incstack: 'samples' grew by 4, more than 3\n");
	ck_assert_int_eq(run("$I compare 1.folded 2.folded --fail-if 'samples +39.9%%'"), 3);
	ck_assert_int_eq(
		run("$I compare 1.folded 2.folded --fail-if samples +9 --fail-if=samples+0 -o "
		    "d.html && :"),
		3);
	ck_assert_int_eq(run("test -s d.html"), 0);
	ck_assert_int_eq(run("$I compare 2.folded 1.folded --fail-if samples +0"), 0);
	ck_assert_int_eq(run("$I compare 1.folded 2.folded --fail-if bytes +3"), 2);
	shows("--fail-if: no kind of weight that is compared is called 'bytes'; there are: "
	      "'samples'\n");
	ck_assert_int_eq(run("$I compare 1.folded 2.folded --fail-if samples +3ms"), 2);
	shows("incstack: --fail-if: '3ms' is no amount of count\n");
	ck_assert_int_eq(run("$I compare 1.folded 2.folded --fail-if samples"), 2);
	shows("incstack: --fail-if takes a kind of weight and by how much it may grow");
	ck_assert_int_eq(run("$I compare 1.folded 2.folded 1.folded --fail-if samples +3"), 2);
}
END_TEST

/* A function at two lines, one of which grew; and one at one line. */
START_TEST(lines_show_where_it_grew)
{
	static const char shape[] =
		"echo '{\"shared\":{\"frames\":[{\"name\":\"main\"},{\"name\":\"f\",\"file\":"
		"\"/src/a.c\",\"line\":3},{\"name\":\"f\",\"file\":\"/src/a.c\",\"line\":4},{"
		"\"name\":\"g\",\"file\":\"/src/b.c\",\"line\":7}]},\"profiles\":[{\"type\":"
		"\"sampled\",\"name\":\"live at exit\",\"unit\":\"bytes\",\"samples\":[[0,1],[0,2],"
		"[0,3]],\"weights\":[%s]}]}' > %s.speedscope.json";

	ck_assert_int_eq(run(shape, "1024,2048,10", "1"), 0);
	ck_assert_int_eq(run(shape, "2048,1024,15", "2"), 0);
	ck_assert_int_eq(run(shape, "1024,4096,10", "3"), 0);
	ck_assert_int_eq(run("$I compare 1.speedscope.json 3.speedscope.json"), 0);
	shows("    +2.0 KiB     3.0 KiB     5.0 KiB   f at a.c:4\n");
	ck_assert_ptr_null(strstr(output, "a.c:3"));
	/* Lines within a function that did not grow do not count. */
	ck_assert_int_eq(run("$I compare 1.speedscope.json 2.speedscope.json"), 0);
	shows("        +5 B        10 B        15 B   g at b.c:7\n");
	ck_assert_ptr_null(strstr(output, "a.c"));
	ck_assert_int_eq(run("$I compare 2.speedscope.json 3.speedscope.json"), 0);
	shows("    +2.0 KiB     3.0 KiB     5.0 KiB   f\n"
	      "    +3.0 KiB     1.0 KiB     4.0 KiB     at a.c:4\n"
	      "    -1.0 KiB     2.0 KiB     1.0 KiB     at a.c:3\n");
	ck_assert_int_eq(run("$I compare --json 2.speedscope.json 3.speedscope.json | python3 -c "
			     "'import json, sys; k = json.load(sys.stdin)[\"kinds\"][0]; f = "
			     "k[\"functions\"]; print(k[\"difference\"], f[0][\"name\"], "
			     "f[0][\"lines\"], f[1][\"difference\"], k[\"contexts\"][0])'"),
			 0);
	ck_assert_str_eq(output,
			 "2043 f [{'file': '/src/a.c', 'line': 4, 'before': 1024, 'after': 4096, "
			 "'difference': 3072}, {'file': '/src/a.c', 'line': 3, 'before': 2048, "
			 "'after': 1024, 'difference': -1024}] -5 {'before': 3072, 'after': 5120, "
			 "'difference': 2048, 'frames': ['main', 'f']}\n");
}
END_TEST

/* A profile in bytes: main > f > xmalloc 10, main > g > xmalloc 20, main > g > dup 40. */
static void make_heap(void)
{
	ck_assert_int_eq(
		run("echo '{\"shared\":{\"frames\":[{\"name\":\"main\"},{\"name\":\"f\",\"file\":"
		    "\"a.c\"},{\"name\":\"g\"},{\"name\":\"xmalloc(unsigned "
		    "long)\"},{\"name\":\"dup\"}]},\"profiles\":[{\"type\":\"sampled\",\"name\":"
		    "\"live at "
		    "exit\",\"unit\":\"none\",\"kindUnit\":\"bytes\",\"samples\":[[0,1,3],[0,2,3],["
		    "0,2,4]],"
		    "\"weights\":[10,20,40]}]}' > h.speedscope.json"),
		0);
}

/* A report and a comparison are answers, so they look through allocators. A conversion changes nothing that nobody
 * has asked for. */
START_TEST(allocators_are_looked_through)
{
	make_heap();
	ck_assert_int_eq(run("$I report h.speedscope.json"), 0);
	shows("        10 B  14.3%         10 B  14.3%  f\n");
	shows("        20 B  28.6%         60 B  85.7%  g\n");
	shows("\nlooked through xmalloc; --allocators shows them\n");
	ck_assert_ptr_null(strstr(output, "xmalloc("));
	ck_assert_int_eq(run("$I report --allocators h.speedscope.json"), 0);
	shows("        30 B  42.9%         30 B  42.9%  xmalloc(unsigned long)\n");
	ck_assert_ptr_null(strstr(output, "looked"));
	ck_assert_int_eq(run("$I report --skip 'd*' h.speedscope.json"), 0);
	shows("        60 B  85.7%         60 B  85.7%  g\n");
	shows("\nlooked through dup, xmalloc; --allocators shows them\n");
	ck_assert_int_eq(run("$I convert h.speedscope.json h.folded 2>/dev/null; sort h.folded"),
			 0);
	ck_assert_str_eq(output, "main;f;xmalloc(unsigned long) 10\nmain;g;dup 40\n"
				 "main;g;xmalloc(unsigned long) 20\n");
	ck_assert_int_eq(run("$I convert --skip dup h.speedscope.json h.folded 2>/dev/null; sort "
			     "h.folded"),
			 0);
	ck_assert_str_eq(output, "main;f;xmalloc(unsigned long) 10\nmain;g 40\n"
				 "main;g;xmalloc(unsigned long) 20\n");
	ck_assert_int_eq(run("$I convert h.speedscope.json i.speedscope.json; $I compare "
			     "h.speedscope.json i.speedscope.json --json 2>/dev/null | grep -c "
			     "functions.:..$"),
			 1);
	/* Times and counts are not memory. */
	ck_assert_int_eq(run("printf 'main;xmalloc 3\\n' > x.folded; $I report x.folded"), 0);
	shows("xmalloc\n");
	ck_assert_int_eq(run("$I report --skip '' x.folded"), 2);
	shows("incstack: --skip takes a text that is not empty\n");
}
END_TEST

START_TEST(contexts_are_focused_on)
{
	make_heap();
	ck_assert_int_eq(run("$I report --focus f h.speedscope.json"), 0);
	shows("live at exit: 10 B in 2 contexts\n");
	shows("\nin focus: 10 B of 'live at exit'; outside, and left out: 60 B\n");
	ck_assert_int_eq(run("$I merge --focus f --focus dup -o m.folded h.speedscope.json "
			     "h.speedscope.json 2>/dev/null; sort m.folded"),
			 0);
	ck_assert_str_eq(output, "main;f;xmalloc(unsigned long) 20\nmain;g;dup 80\n");
	ck_assert_int_eq(run("$I report --focus xm h.speedscope.json"), 1);
	shows("incstack: no context has a function that matches --focus 'xm'; a name is matched as "
	      "a whole, "
	      "* stands for any text\n");
}
END_TEST

START_TEST(known_leaks_are_suppressed)
{
	make_heap();
	ck_assert_int_eq(
		run("printf '# known\\n\\n  leak:a.c$ \\r\\nleak:^du*p$\\n' > s; $I report "
		    "--suppressions s h.speedscope.json"),
		0);
	shows("live at exit: 20 B in 4 contexts\n");
	shows("\nsuppressed 2 contexts, 50 B of 'live at exit'\n");
	ck_assert_int_eq(run("printf 'leak:^up\\nleak:^main2\\nleak:xmalloc$' > s; $I report "
			     "--suppressions s h.speedscope.json"),
			 0);
	shows("\nsuppressed 0 contexts, 0 B of 'live at exit'\n");
	ck_assert_int_eq(
		run("printf 'leak:xmalloc' > t; $I convert --suppressions s --suppressions t "
		    "h.speedscope.json h.folded; cat h.folded"),
		0);
	shows("incstack: h.speedscope.json: suppressed 2 contexts, 30 B of 'live at exit'\n");
	shows("main;g;dup 40\n");
	ck_assert_ptr_null(strstr(output, "malloc("));
	ck_assert_int_eq(run("$I compare --suppressions t h.speedscope.json h.speedscope.json"), 0);
	shows("live at exit: 40 B before, 40 B after, no difference\n");
	ck_assert_int_eq(run("$I report --suppressions s a.folded"), 2);
	shows("--suppressions has no effect on a profile without the kind of weight 'live at "
	      "exit'");
}
END_TEST

/* Each is one line that says where. */
START_TEST(wrong_suppressions_are_refused)
{
	static const char *const wrong[] = {
		"race:f",       "s:2: the line is no suppression of a leak; a line is leak:PATTERN",
		"leak",         "s:2: the line is no suppression of a leak; a line is leak:PATTERN",
		"leak: ",       "s:2: the line has no pattern after leak:",
		"leak:^$",      "s:2: the line has no pattern after leak:",
		"leak:f\\0g",   "s:2: the line is not text",
		"leak:%05000d", "s:2: the line is too long"};

	make_heap();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i += 2) {
		ck_assert_int_eq(run("printf '# s\\n%s\\n' > s; $I report --suppressions s "
				     "h.speedscope.json",
				     wrong[i]),
				 2);
		shows(wrong[i + 1]);
		ck_assert_ptr_eq(strchr(output, '\n'), output + strlen(output) - 1);
	}
	ck_assert_int_eq(run("$I report --suppressions nowhere h.speedscope.json"), 1);
	shows("incstack: cannot read nowhere: No such file or directory\n");
	ck_assert_int_eq(run("$I report --suppressions . h.speedscope.json"), 1);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("tool");
	Suite *suite = suite_create("comparison");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, identical_profiles_compare_as_one);
	tcase_add_test(tests, kinds_are_compared_by_name);
	tcase_add_test(tests, a_comparison_names_what_changed_most);
	tcase_add_test(tests, shares_are_compared_on_request);
	tcase_add_test(tests, small_differences_are_hidden_and_counted);
	tcase_add_test(tests, growth_beyond_a_limit_has_a_status);
	tcase_add_test(tests, lines_show_where_it_grew);
	tcase_add_test(tests, allocators_are_looked_through);
	tcase_add_test(tests, contexts_are_focused_on);
	tcase_add_test(tests, known_leaks_are_suppressed);
	tcase_add_test(tests, wrong_suppressions_are_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
