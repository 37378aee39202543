/* SPDX-License-Identifier: MIT
 *
 * The subcommands on profiles, run as people run them: what they print, what they
 * write, and their exit status.
 */
#include "../unit/run_suite.h"
#include "run_tool.h"

START_TEST(a_profile_goes_through_all_formats)
{
	ck_assert_int_eq(run("$I convert a.folded 1.pb.gz && $I convert 1.pb.gz 2.speedscope.json "
			     "&& $I convert 2.speedscope.json 3.firefox.json && $I convert "
			     "3.firefox.json b.folded && sort a.folded > x && sort b.folded | "
			     "diff - x"),
			 0);
	ck_assert_str_eq(output, "");
	ck_assert_int_eq(run("$I convert a.folded a.html && head -c 15 a.html"), 0);
	ck_assert_str_eq(output, "<!DOCTYPE html>");
}
END_TEST

START_TEST(streams_and_given_formats)
{
	ck_assert_int_eq(run("cat a.folded | $I convert --format pprof - - | $I convert "
			     "--input-format pprof --format folded - - | sort | head -1"),
			 0);
	ck_assert_str_eq(output, "main 2\n");
	ck_assert_int_eq(
		run("cp a.folded odd; $I convert -F folded odd -f speedscope even; head -c "
		    "10 even"),
		0);
	ck_assert_str_eq(output, "{\"$schema\"");
}
END_TEST

START_TEST(a_report_fits_and_ranks)
{
	ck_assert_int_eq(run("COLUMNS=60 $I report -n 1 a.folded"), 0);
	shows("samples: 10 in 4 contexts");
	shows("           5  50.0%            5  50.0%  g \"x\"\n");
	shows("           5  50.0%  main > f (int) > g \"x\"\n");
	ck_assert_ptr_null(strstr(output, "main > gr")); /* second */
	ck_assert_int_eq(run("printf 'main;%%0100d 1\\n' 7 | COLUMNS=50 $I report - | wc -L"), 0);
	ck_assert_int_le(atoi(output), 50);
	ck_assert_int_eq(run("$I report -k nothing a.folded"), 2);
	shows("no kind of weight is called 'nothing'; there are: 'samples'");
}
END_TEST

/* Two contexts that differ in the line only; and what the other format cannot carry. */
START_TEST(lines_are_shown_and_losses_said)
{
	ck_assert_int_eq(run("echo '{\"shared\":{\"frames\":[{\"name\":\"m\",\"line\":3},{"
			     "\"name\":\"m\",\"line\":4}]},\"profiles\":[{\"unit\":\"bytes\","
			     "\"samples\":[[0],[1]],\"weights\":[5,6]}]}' > l.speedscope.json; "
			     "$I report l.speedscope.json"),
			 0);
	shows("54.5%  m:4\n");
	shows("45.5%  m:3\n");
	ck_assert_int_eq(run("$I convert l.speedscope.json l.pb.gz"), 0);
	ck_assert_str_eq(output, "");
	ck_assert_int_eq(run("$I convert l.pb.gz l.folded"), 0);
	ck_assert_str_eq(output, "incstack: not kept: line numbers, the kind's name and unit\n");
	ck_assert_int_eq(run("$I merge -o m.folded l.pb.gz l.pb.gz"), 0);
	ck_assert_str_eq(output, "incstack: not kept: line numbers, the kind's name and unit\n");
}
END_TEST

START_TEST(merging_adds_and_averages)
{
	ck_assert_int_eq(run("$I merge -o - -f folded a.folded b.folded | LC_ALL=C sort"), 0);
	ck_assert_str_eq(output, "main 2\nmain;f (int);g \"x\" 6\nmain;größe 3\nmain;h 9\n");
	ck_assert_int_eq(run("printf 'main 1\\n' > c.folded; $I merge -a -o - -f folded a.folded "
			     "c.folded | LC_ALL=C sort"),
			 0);
	ck_assert_str_eq(output, "main 12\nmain;f (int);g \"x\" 5\nmain;größe 3\n");
	ck_assert_int_eq(run("$I merge a.folded"), 2);
}
END_TEST

START_TEST(faults_have_a_place_and_a_status)
{
	ck_assert_int_eq(run("printf 'main 1\\nmain;f x\\n' | $I convert - out.folded"), 1);
	ck_assert_str_eq(output,
			 "incstack: (stdin): no weight at the end of the line (line 2, byte "
			 "7)\n");
	ck_assert_int_eq(run("test -e out.folded"), 1);
	ck_assert_int_eq(
		run("$I convert a.folded a.pb.gz; head -c 60 a.pb.gz > cut.pb.gz; $I report "
		    "cut.pb.gz"),
		1);
	shows("cut.pb.gz: the compressed data are cut off (byte ");
	ck_assert_int_eq(run("$I convert missing.folded out.folded"), 1);
	shows("cannot read missing.folded: No such file");
	ck_assert_int_eq(run("$I convert a.folded nowhere/out.pb.gz"), 1);
	ck_assert_int_eq(run("$I convert a.folded /dev/full -f pprof"), 1);
	shows("No space left on device");
	ck_assert_int_eq(run("$I convert a.folded out.unknown"), 2);
	ck_assert_int_eq(run("$I convert a.folded"), 2);
	ck_assert_int_eq(run("$I convert a.folded a.folded"), 2);
	ck_assert_int_eq(run("$I convert a.html out.folded"), 2);
	ck_assert_int_eq(run("$I convert -f nonsense a.folded b"), 2);
}
END_TEST

START_TEST(every_command_explains_itself)
{
	ck_assert_int_eq(run("for c in convert merge compare report; do $I $c --help; done"), 0);
	shows("usage: incstack convert");
	shows("usage: incstack merge");
	shows("usage: incstack compare");
	shows("usage: incstack report");
	ck_assert_int_eq(run("$I --help"), 0);
	shows("convert INPUT OUTPUT");
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("tool");
	Suite *suite = suite_create("profile");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_profile_goes_through_all_formats);
	tcase_add_test(tests, streams_and_given_formats);
	tcase_add_test(tests, a_report_fits_and_ranks);
	tcase_add_test(tests, lines_are_shown_and_losses_said);
	tcase_add_test(tests, merging_adds_and_averages);
	tcase_add_test(tests, faults_have_a_place_and_a_status);
	tcase_add_test(tests, every_command_explains_itself);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
