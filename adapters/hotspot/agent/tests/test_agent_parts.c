/* SPDX-License-Identifier: MIT
 *
 * The parts of the agent that know nothing of the JVM: file names, names of methods, the map of
 * identifiers, lines, latencies, the backlog.
 */
#include <stdlib.h>
#include <string.h>

#include "run_suite.h"
#include "backlog.h"
#include "idmap.h"
#include "latency.h"
#include "lines.h"
#include "names.h"
#include "text.h"

/* ---- file names ---- */

static void expect_name(const char *pattern, bool has_parts, const char *name)
{
	const struct agent_name_values values = {
		.process = 42, .start = 0, .part = 7, .has_parts = has_parts};
	char made[64];

	ck_assert(agent_name_make(pattern, &values, made, sizeof(made)));
	ck_assert_str_eq(made, name);
}

START_TEST(templates_are_expanded)
{
	setenv("TZ", "UTC", 1);
	expect_name("a.html", false, "a.html");
	expect_name("a-%p.html", false, "a-42.html");
	expect_name("%t.html", false, "19700101-000000.html");
	expect_name("%p%%%n.html", false, "42%7.html");
	expect_name("a-%n.html", true, "a-7.html");
	expect_name("a.html", true, "a-7.html");
	expect_name("d.d/out.pb.gz", true, "d.d/out-7.pb.gz");
	expect_name("d.d/out", true, "d.d/out-7");
	expect_name("%%n.html", true, "%n-7.html");
	expect_name(".html", true, ".html-7");
}
END_TEST

START_TEST(names_that_do_not_fit_are_refused)
{
	const struct agent_name_values values = {.process = 42, .part = 7};
	const struct agent_name_values part = {.process = 42, .part = 7, .has_parts = true};
	char made[8];

	ck_assert(agent_name_make("1234567", &values, made, sizeof(made)));
	ck_assert(!agent_name_make("12345678", &values, made, sizeof(made)));
	ck_assert(!agent_name_make("123456%p", &values, made, sizeof(made)));
	ck_assert(agent_name_make("12345", &part, made, sizeof(made)));
	ck_assert_str_eq(made, "12345-7");
	ck_assert(!agent_name_make("123456", &part, made, sizeof(made)));
	ck_assert(!agent_name_make("", &values, made, 0));
}
END_TEST

/* ---- names of methods ---- */

static void expect_method(const char *class, const char *method, const char *name)
{
	char *made = agent_method_name(class, method);

	ck_assert_str_eq(made, name);
	free(made);
}

START_TEST(methods_are_named_as_in_java)
{
	expect_method("Ljava/util/List;", "get", "java.util.List.get");
	expect_method("LMain;", "<init>", "Main.<init>");
	expect_method("LA$$Lambda$14.0x00007f4c;", "run", "A$$Lambda$14.run");
	expect_method("LA$$Lambda/0x00007f4c;", "run", "A$$Lambda.run");
	expect_method("LA0x12;", "run", "A0x12.run");
	expect_method("Lp/0x;", "run", "p.0x.run");
	expect_method("L", "x", "L.x");
	expect_method("", "x", ".x");
}
END_TEST

static void expect_repaired(const char *from, const char *to)
{
	char text[64];

	strcpy(text, from);
	agent_text_repair(text);
	ck_assert_str_eq(text, to);
}

START_TEST(modified_utf8_becomes_utf8)
{
	expect_repaired("plain", "plain");
	expect_repaired("\xc3\xa4 \xe2\x82\xac", "\xc3\xa4 \xe2\x82\xac");
	expect_repaired("\xed\xa0\xbd\xed\xb8\x80!", "\xf0\x9f\x98\x80!"); /* a pair */
	expect_repaired("\xed\xa0\xbdx", "?x");                            /* half of one */
	expect_repaired("\xed\xb8\x80x", "?x");
	expect_repaired("\xc0\x80x", "?x"); /* NUL as the JVM writes it */
	expect_repaired("a\nb\x7f", "a?b?");
	expect_repaired("\xff\xc3", "??");
	expect_repaired("\xe2\x82", "??");
	expect_repaired("\xc1\xa1", "?"); /* too long for its character */
	expect_repaired("\xe0\x81\xa1", "?");
}
END_TEST

/* ---- the map ---- */

static bool odd(void *context, uint32_t owner)
{
	++*(int *)context;
	return owner % 2;
}

START_TEST(the_map_keeps_what_was_put)
{
	enum { COUNT = 20000 };
	struct agent_idmap map = {0};
	int asked = 0;

	ck_assert_ptr_null(agent_idmap_find(&map, 5));
	ck_assert(!agent_idmap_put(&map, 0, 1, 1));
	for (uint32_t i = 1; i <= COUNT; i++)
		ck_assert(agent_idmap_put(&map, i * UINT64_C(0x7f0010), i, 2 * i));
	ck_assert(agent_idmap_put(&map, UINT64_C(0x7f0010), 1, 99));
	ck_assert_uint_eq(map.used, COUNT);
	ck_assert_uint_eq(agent_idmap_find(&map, UINT64_C(0x7f0010))->number, 99);
	agent_idmap_prune(&map, odd, &asked);
	ck_assert_int_eq(asked, COUNT);
	ck_assert_uint_eq(map.used, COUNT / 2);
	for (uint32_t i = 1; i <= COUNT; i++) {
		const struct agent_idmap_entry *entry =
			agent_idmap_find(&map, i * UINT64_C(0x7f0010));

		ck_assert_int_eq(entry == NULL, i % 2);
		ck_assert(!entry || entry->number == 2 * i);
	}
	agent_idmap_free(&map);
}
END_TEST

/* ---- lines ---- */

START_TEST(lines_follow_their_positions)
{
	const struct agent_line table[] = {{8, 12}, {0, 10}, {20, 11}};

	ck_assert_int_eq(agent_line_of(table, 3, 0), 10);
	ck_assert_int_eq(agent_line_of(table, 3, 7), 10);
	ck_assert_int_eq(agent_line_of(table, 3, 8), 12);
	ck_assert_int_eq(agent_line_of(table, 3, 19), 12);
	ck_assert_int_eq(agent_line_of(table, 3, 1000), 11);
	ck_assert_int_eq(agent_line_of(table, 3, -1), 0);
	ck_assert_int_eq(agent_line_of(NULL, 0, 5), 0);
}
END_TEST

/* ---- latencies ---- */

START_TEST(quantiles_are_off_by_an_eighth_at_most)
{
	struct agent_latency latency = {0};

	ck_assert_uint_eq(agent_latency_quantile(&latency, 0.5), 0);
	for (uint64_t ns = 1; ns <= 100000; ns++)
		agent_latency_add(&latency, ns);
	for (double share = 0.01; share < 1; share += 0.01) {
		double exact = share * 100000;
		double found = (double)agent_latency_quantile(&latency, share);

		ck_assert_msg(found >= exact - 1 && found <= exact * 1.13, "%f: %f", exact, found);
	}
	ck_assert_uint_eq(agent_latency_quantile(&latency, 1), 100000);
	agent_latency_add(&latency, UINT64_MAX);
	ck_assert_uint_eq(agent_latency_quantile(&latency, 1), UINT64_MAX);
}
END_TEST

START_TEST(small_latencies_are_exact)
{
	for (uint64_t ns = 0; ns < 16; ns++) {
		struct agent_latency latency = {0};

		agent_latency_add(&latency, ns);
		agent_latency_add(&latency, 1000);
		ck_assert_uint_eq(agent_latency_quantile(&latency, 0.5), ns);
	}
}
END_TEST

/* ---- the backlog ---- */

START_TEST(the_backlog_follows_what_was_retrieved)
{
	struct agent_backlog backlog;
	uint64_t begun;

	agent_backlog_open(&backlog, 1000, 500);
	agent_backlog_took(&backlog, 600); /* nobody knows how large they are */
	ck_assert(!agent_backlog_exceeds(&backlog, 0));
	begun = agent_backlog_begin(&backlog);
	agent_backlog_took(&backlog, 610);
	agent_backlog_took(&backlog, 605); /* another thread was faster */
	agent_backlog_end(&backlog, begun, 2, 160);
	ck_assert(agent_backlog_exceeds(&backlog, 0.79)); /* 10 of 80 bytes */
	ck_assert(!agent_backlog_exceeds(&backlog, 0.81));
	agent_backlog_end(&backlog, agent_backlog_begin(&backlog), 100, 800);
	ck_assert(!agent_backlog_exceeds(&backlog, 0));
	agent_backlog_took(&backlog, 620); /* of 70 bytes */
	ck_assert(agent_backlog_exceeds(&backlog, 0.69));
	ck_assert(!agent_backlog_exceeds(&backlog, 0.71));
	agent_backlog_end(&backlog, agent_backlog_begin(&backlog), 0, 0); /* all were lost */
	ck_assert(!agent_backlog_exceeds(&backlog, 0));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("parts");
	Suite *suite = suite_create("agent");

	tcase_add_test(tests, templates_are_expanded);
	tcase_add_test(tests, names_that_do_not_fit_are_refused);
	tcase_add_test(tests, methods_are_named_as_in_java);
	tcase_add_test(tests, modified_utf8_becomes_utf8);
	tcase_add_test(tests, the_map_keeps_what_was_put);
	tcase_add_test(tests, lines_follow_their_positions);
	tcase_add_test(tests, quantiles_are_off_by_an_eighth_at_most);
	tcase_add_test(tests, small_latencies_are_exact);
	tcase_add_test(tests, the_backlog_follows_what_was_retrieved);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
