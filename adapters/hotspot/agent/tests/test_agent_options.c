/* SPDX-License-Identifier: MIT
 *
 * The options of the agent: what they mean, and that wrong ones give one clear line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>

#include "run_suite.h"
#include "options.h"

static struct agent_options read_good(const char *text)
{
	struct agent_options options;
	char error[AGENT_ERROR_MAX];

	ck_assert_msg(agent_options_read(text, &options, error), "%s: %s", text, error);
	return options;
}

static void expect_bad(const char *text, const char *part)
{
	struct agent_options options;
	char error[AGENT_ERROR_MAX];

	ck_assert_msg(!agent_options_read(text, &options, error), "%s is accepted", text);
	ck_assert_msg(strstr(error, part), "%s: %s", text, error);
}

START_TEST(nothing_means_the_defaults)
{
	const char *const empty[] = {NULL, "", ",", ",,,"};

	for (size_t i = 0; i < 4; i++) {
		struct agent_options o = read_good(empty[i]);

		ck_assert_int_eq(o.command, AGENT_START);
		ck_assert_int_eq(o.mode, AGENT_MODE_BEST);
		ck_assert_uint_eq(o.interval_ns, 10000000);
		ck_assert_uint_eq(o.duration_ns + o.split_ns + o.samples, 0);
		ck_assert_uint_eq(o.depth, 2048);
		ck_assert_uint_eq(o.memory, 256 << 20);
		ck_assert_int_eq(o.format, INCSTACK_FORMAT_HTML);
		ck_assert(!o.threads && !o.waiting && !o.lines && !o.stats && !o.check);
		ck_assert(!o.realtime);
		ck_assert_str_eq(o.file, "incstack-%p.html");
	}
}
END_TEST

START_TEST(all_options_are_read)
{
	struct agent_options o = read_good("interval=250us,mode=partial-incremental,file=a.pb.gz,"
					   "duration=1.5s,split=100ms,samples=3,depth=70,threads,"
					   "waiting=yes,lines=no,stats=on,check=1,realtime");

	ck_assert_uint_eq(o.interval_ns, 250000);
	ck_assert_int_eq(o.mode, AGENT_MODE_PARTIAL_INCREMENTAL);
	ck_assert_int_eq(o.format, INCSTACK_FORMAT_PPROF);
	ck_assert_str_eq(o.file, "a.pb.gz");
	ck_assert_uint_eq(o.duration_ns, 1500000000);
	ck_assert_uint_eq(o.split_ns, 100000000);
	ck_assert_uint_eq(o.samples, 3);
	ck_assert_uint_eq(o.depth, 70);
	ck_assert(o.threads && o.waiting && !o.lines && o.stats && o.check && o.realtime);
	ck_assert(!read_good("threads=no,threads=off,threads=0,threads=false").threads);
}
END_TEST

START_TEST(sizes_have_units)
{
	const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {{"memory=8m", 8 << 20},
		    {"memory=8388608", 8 << 20},
		    {"memory=20480K", 20 << 20},
		    {"memory=2g", UINT64_C(2) << 30},
		    {"memory=1024G", UINT64_C(1) << 40}};
	const char *const bad[] = {"memory",       "memory=",     "memory=7m",
				   "memory=-9m",   "memory=9mb",  "memory=m",
				   "memory=1025g", "memory=1t",   "memory=99999999999999999999999g",
				   "memory=0x9m",  "memory=8.5m", "memory=17179869184g",
				   "memory= 9m",   "memory=9 m",  "memory=18446744073709551616"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_uint_eq(read_good(good[i].text).memory, good[i].bytes);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_bad(bad[i], "must be a size from 8m to 1024g");
}
END_TEST

START_TEST(the_name_follows_from_the_format)
{
	const char *const pairs[][2] = {{"folded", "incstack-%p.folded"},
					{"collapsed", "incstack-%p.folded"},
					{"html", "incstack-%p.html"},
					{"pprof", "incstack-%p.pb.gz"},
					{"speedscope", "incstack-%p.speedscope.json"},
					{"firefox", "incstack-%p.firefox.json"}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char text[64];

		snprintf(text, sizeof(text), "format=%s", pairs[i][0]);
		ck_assert_str_eq(read_good(text).file, pairs[i][1]);
		snprintf(text, sizeof(text), "file=x.html,format=%s", pairs[i][0]);
		ck_assert_str_eq(read_good(text).file, "x.html");
	}
}
END_TEST

START_TEST(times_have_units)
{
	const struct {
		const char *text;
		uint64_t ns;
	} good[] = {{"interval=10000", 10000},      {"interval=10000ns", 10000},
		    {"interval=10us", 10000},       {"interval=0.1ms", 100000},
		    {"interval=1s", 1000000000},    {"interval=2m", 120000000000},
		    {"interval=24m", 1440000000000}};
	const char *const bad[] = {"interval",      "interval=",      "interval=9999",
				   "interval=-1ms", "interval=1h",    "interval=ms",
				   "interval=1e9",  "interval=0x100", "interval=1 ms",
				   "interval=nan",  "interval=inf",   "interval=99999999999s",
				   "split=1us",     "duration=0",     "interval=1.2.3ms"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_uint_eq(read_good(good[i].text).interval_ns, good[i].ns);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_bad(bad[i], "must be a time");
}
END_TEST

START_TEST(the_format_follows_the_name)
{
	const struct {
		const char *text;
		int format;
		bool lines;
	} known[] = {{"file=x.html", INCSTACK_FORMAT_HTML, false},
		     {"file=x.folded", INCSTACK_FORMAT_FOLDED, false},
		     {"file=a.b/x.collapsed", INCSTACK_FORMAT_FOLDED, false},
		     {"file=x.pb.gz", INCSTACK_FORMAT_PPROF, true},
		     {"file=x.speedscope.json", INCSTACK_FORMAT_SPEEDSCOPE, true},
		     {"file=x.firefox.json", INCSTACK_FORMAT_FIREFOX, true},
		     {"file=x.json", INCSTACK_FORMAT_FIREFOX, true},
		     {"file=x,format=pprof", INCSTACK_FORMAT_PPROF, true},
		     {"format=collapsed,file=x.html", INCSTACK_FORMAT_FOLDED, false},
		     {"file=x.folded,lines", INCSTACK_FORMAT_FOLDED, true}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct agent_options o = read_good(known[i].text);

		ck_assert_msg(o.format == known[i].format, "%s", known[i].text);
		ck_assert_msg(o.lines == known[i].lines, "%s", known[i].text);
	}
	expect_bad("file=x.svg", "does not show the format");
	expect_bad("file=pprof", "does not show the format");
	expect_bad("format=svg", "known are html");
	expect_bad("format=.html", "known are html");
}
END_TEST

START_TEST(commands_are_options_without_a_value)
{
	ck_assert_int_eq(read_good("stop").command, AGENT_STOP);
	ck_assert_int_eq(read_good("dump").command, AGENT_DUMP);
	ck_assert_int_eq(read_good("next").command, AGENT_NEXT);
	ck_assert_int_eq(read_good("status").command, AGENT_STATUS);
	ck_assert_int_eq(read_good("start,interval=1ms").command, AGENT_START);
	expect_bad("stop=1", "unknown option 'stop'");
}
END_TEST

START_TEST(complaints_are_one_short_line)
{
	char text[5001], error[AGENT_ERROR_MAX];
	struct agent_options options;

	expect_bad("intervall=1ms", "unknown option 'intervall'; known are interval");
	expect_bad("mode=fast", "option mode is 'fast'; known are jvmti");
	expect_bad("samples=0", "from 1 to");
	expect_bad("samples=12x", "from 1 to");
	expect_bad("depth=65537", "from 1 to 65536");
	expect_bad("threads=maybe", "must be yes or no");
	expect_bad("file=", "name of a file");
	expect_bad("file=%x.html", "'%x'");
	expect_bad("file=100%", "'%'");
	expect_bad("in\nter\tval", "unknown option 'in?ter?val'");
	memset(text, 'x', 5000);
	text[5000] = 0;
	expect_bad(text, "xxx...'");
	memcpy(text, "file=", 5);
	expect_bad(text, "name of a file");
	ck_assert(!agent_options_read("a\nb\x80", &options, error));
	for (const char *c = error; *c; c++)
		ck_assert(*c >= ' ' && *c <= '~');
}
END_TEST

/* Strings of the options' own words and of any bytes. The sanitizers look on. */
START_TEST(no_string_does_harm)
{
	static const char *const words[] = {
		"interval", "mode",  "file", "format", "duration", "split", "samples", "depth",
		"threads",  "stats", "stop", "=",      "=",        "=",     ",",       ",",
		",",        "1ms",   "%p",   "%",      "partial",  ".html", "9",       ".",
		"%n",       "pprof", "-",    "\xff",   "\n",       " ",     "10us",    "x"};
	uint64_t random = 88172645463325252u;

	for (int round = 0; round < 50000; round++) {
		struct agent_options options;
		char text[256] = "", error[AGENT_ERROR_MAX];

		for (int i = 0; i < 12; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			strcat(text, words[random % (sizeof(words) / sizeof(words[0]))]);
		}
		bool valid = agent_options_read(text, &options, error);

		/* An assertion makes a system call. */
		if (valid ? options.interval_ns < 10000 : !*error || strchr(error, '\n'))
			ck_abort_msg("%s", text);
	}
}
END_TEST

START_TEST(times_are_shown_with_a_unit)
{
	char text[32];

	ck_assert_str_eq(agent_time_text(10000, text), "10 us");
	ck_assert_str_eq(agent_time_text(100000, text), "100 us");
	ck_assert_str_eq(agent_time_text(1500000, text), "1.5 ms");
	ck_assert_str_eq(agent_time_text(2000000000, text), "2 s");
	ck_assert_str_eq(agent_mode_name(AGENT_MODE_PARTIAL), "partial");
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("options");
	Suite *suite = suite_create("agent");

	tcase_add_test(tests, nothing_means_the_defaults);
	tcase_add_test(tests, all_options_are_read);
	tcase_add_test(tests, times_have_units);
	tcase_add_test(tests, sizes_have_units);
	tcase_add_test(tests, the_name_follows_from_the_format);
	tcase_add_test(tests, the_format_follows_the_name);
	tcase_add_test(tests, commands_are_options_without_a_value);
	tcase_add_test(tests, complaints_are_one_short_line);
	tcase_add_test(tests, no_string_does_harm);
	tcase_add_test(tests, times_are_shown_with_a_unit);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
