/* SPDX-License-Identifier: MIT
 *
 * The call subgraph: single rules, by small examples.
 */
#include <check.h>
#include <stdbool.h>

#include <incstack/instrument.h>

#include "changed.h"
#include "run_suite.h"

enum { OBJECT = 1, A, B, C, SHAPE };   /* classes */
enum { RUN = 100, WORK, DRAW, OTHER }; /* names */

static uint64_t number_of(uint64_t class_id, uint64_t name)
{
	return class_id * 1000 + name;
}

struct listed {
	uint64_t name;
	uint32_t flags;
	struct incstack_call_site calls[4];
	uint32_t call_count;
};

static int load(uint64_t class_id, uint64_t super, uint64_t interface, const struct listed *list,
		uint32_t count)
{
	const uint64_t supers[] = {super ? super : interface, interface};
	struct incstack_method methods[8];
	const struct incstack_class added = {
		.size = sizeof(added),
		.class_id = class_id,
		.supers = supers,
		.super_count = (uint32_t)(super != 0) + (uint32_t)(interface != 0),
		.method_count = count,
		.methods = methods,
	};

	for (uint32_t i = 0; i < count; i++)
		methods[i] =
			(struct incstack_method){number_of(class_id, list[i].name), list[i].name,
						 list[i].flags, list[i].call_count, list[i].calls};
	return incstack_subgraph_add_class(subgraph, &added);
}

#define LOAD(class_id, super, interface, ...) \
	ck_assert_int_eq(load(class_id, super, interface, (struct listed[]){__VA_ARGS__}, \
			      sizeof((struct listed[]){__VA_ARGS__}) / sizeof(struct listed)), \
			 0)

static void expect(uint64_t class_id, uint64_t name, bool is_made)
{
	ck_assert_msg(made[number_of(class_id, name)] == is_made, "method %llu of class %llu",
		      (unsigned long long)name, (unsigned long long)class_id);
}

START_TEST(static_calls)
{
	create(INCSTACK_SUBGRAPH_REACHABLE, 0);
	LOAD(OBJECT, 0, 0, {.name = OTHER});
	LOAD(A, OBJECT, 0,
	     {RUN, 0, {{A, WORK, INCSTACK_CALL_STATIC}, {B, WORK, INCSTACK_CALL_STATIC}}, 2},
	     {.name = WORK}, {.name = OTHER});
	ck_assert_int_eq(take_changes(), 0);
	ck_assert_int_eq(incstack_subgraph_add_root(subgraph, A, RUN), 0);
	ck_assert_int_eq(take_changes(), 2);
	expect(A, RUN, true);
	expect(A, WORK, true);
	/* A class that is loaded later; the call finds the method of its superclass. */
	LOAD(C, OBJECT, 0, {WORK, 0, {{OBJECT, OTHER, INCSTACK_CALL_STATIC}}, 1});
	ck_assert_int_eq(take_changes(), 0);
	LOAD(B, C, 0, {.name = RUN});
	ck_assert_int_eq(take_changes(), 2);
	expect(C, WORK, true);
	expect(OBJECT, OTHER, true);
	expect(B, RUN, false);
	expect(A, OTHER, false);
}
END_TEST

START_TEST(virtual_calls)
{
	create(INCSTACK_SUBGRAPH_REACHABLE, 0);
	LOAD(OBJECT, 0, 0, {.name = OTHER});
	LOAD(SHAPE, OBJECT, 0, {DRAW, INCSTACK_METHOD_ABSTRACT, {{0}}, 0});
	LOAD(A, OBJECT, 0, {RUN, 0, {{SHAPE, DRAW, INCSTACK_CALL_VIRTUAL}}, 1});
	/* Its own draw() becomes one of SHAPE only through B. */
	LOAD(C, OBJECT, 0, {.name = DRAW});
	ck_assert_int_eq(incstack_subgraph_add_root(subgraph, A, RUN), 0);
	ck_assert_int_eq(take_changes(), 1);
	LOAD(B, C, SHAPE, {.name = WORK});
	ck_assert_int_eq(take_changes(), 1);
	expect(C, DRAW, true);
	expect(SHAPE, DRAW, false);
	/* One more class below. */
	LOAD(10, B, 0, {.name = DRAW});
	ck_assert_int_eq(take_changes(), 1);
	expect(10, DRAW, true);
}
END_TEST

START_TEST(callees_after_the_first_run)
{
	create(INCSTACK_SUBGRAPH_CALLED, 0);
	LOAD(A, 0, 0, {RUN, 0, {{A, WORK, INCSTACK_CALL_STATIC}}, 1},
	     {WORK, 0, {{A, OTHER, INCSTACK_CALL_STATIC}}, 1}, {.name = OTHER});
	ck_assert_int_eq(incstack_subgraph_add_root(subgraph, A, RUN), 0);
	ck_assert_int_eq(take_changes(), 1);
	ck_assert_int_eq(incstack_subgraph_method_entered(subgraph, number_of(A, WORK)), 0);
	ck_assert_int_eq(take_changes(), 0); /* not instrumented, so nobody can know */
	ck_assert_int_eq(incstack_subgraph_method_entered(subgraph, number_of(A, RUN)), 0);
	ck_assert_int_eq(take_changes(), 1);
	expect(A, WORK, true);
	expect(A, OTHER, false);
	ck_assert_int_eq(incstack_subgraph_method_entered(subgraph, number_of(A, WORK)), 0);
	ck_assert_int_eq(take_changes(), 1);
	/* The first run is forgotten with the root. */
	ck_assert_int_eq(incstack_subgraph_remove_root(subgraph, A, RUN), 0);
	ck_assert_int_eq(take_changes(), 3);
	ck_assert_int_eq(incstack_subgraph_add_root(subgraph, A, RUN), 0);
	ck_assert_int_eq(take_changes(), 1);
	expect(A, WORK, false);
}
END_TEST

START_TEST(receivers_that_were_seen)
{
	create(INCSTACK_SUBGRAPH_REACHABLE, INCSTACK_SUBGRAPH_RECEIVERS);
	LOAD(SHAPE, 0, 0, {.name = DRAW});
	LOAD(A, 0, 0, {RUN, 0, {{SHAPE, DRAW, INCSTACK_CALL_VIRTUAL}}, 1});
	LOAD(B, SHAPE, 0, {.name = DRAW});
	LOAD(C, SHAPE, 0, {.name = WORK});
	ck_assert_int_eq(incstack_subgraph_add_root(subgraph, A, RUN), 0);
	ck_assert_int_eq(take_changes(), 1);
	ck_assert_int_eq(incstack_subgraph_class_seen(subgraph, B), 0);
	ck_assert_int_eq(take_changes(), 1);
	expect(B, DRAW, true);
	expect(SHAPE, DRAW, false);
	ck_assert_int_eq(incstack_subgraph_class_seen(subgraph, C), 0);
	ck_assert_int_eq(take_changes(), 1);
	expect(SHAPE, DRAW, true);
}
END_TEST

START_TEST(limits_and_code_that_stays)
{
	create(INCSTACK_SUBGRAPH_CALLED, 0);
	LOAD(A, 0, 0,
	     {RUN, 0, {{A, WORK, INCSTACK_CALL_STATIC}, {A, DRAW, INCSTACK_CALL_STATIC}}, 2},
	     {WORK, INCSTACK_METHOD_FIXED, {{B, OTHER, INCSTACK_CALL_STATIC}}, 1},
	     {DRAW, INCSTACK_METHOD_OPAQUE, {{B, RUN, INCSTACK_CALL_STATIC}}, 1});
	LOAD(B, 0, 0, {.name = OTHER}, {.name = RUN}, {.name = WORK});
	ck_assert_int_eq(incstack_subgraph_add_root(subgraph, A, RUN), 0);
	ck_assert_int_eq(take_changes(), 1);
	ck_assert_int_eq(incstack_subgraph_method_entered(subgraph, number_of(A, RUN)), 0);
	ck_assert_int_eq(take_changes(), 1); /* through the one that stays, not through the limit */
	expect(B, OTHER, true);
	expect(B, RUN, false);
	ck_assert_int_eq(incstack_subgraph_method_called(subgraph, number_of(B, WORK)), 0);
	ck_assert_int_eq(take_changes(), 1); /* by reflection */
}
END_TEST

START_TEST(diamonds_of_interfaces)
{
	enum { FLOORS = 40 };

	/* Each floor has two interfaces, which both extend both of the floor below. */
	create(INCSTACK_SUBGRAPH_REACHABLE, 0);
	for (uint64_t floor = 0; floor < FLOORS; floor++)
		for (uint64_t side = 0; side < 2; side++) {
			const uint64_t id = 100 + floor * 2 + side;
			const bool is_first = floor == 0;
			const struct listed method = {.name = floor == 0 ? DRAW : OTHER};

			ck_assert_int_eq(load(id, is_first ? 0 : 100 + floor * 2 - 2,
					      is_first ? 0 : 100 + floor * 2 - 1, &method, 1),
					 0);
		}
	ck_assert_int_eq(incstack_subgraph_add_root(subgraph, 100 + FLOORS * 2 - 1, DRAW), 0);
	ck_assert_int_eq(take_changes(), 1);
	ck_assert(made[number_of(100, DRAW)] || made[number_of(101, DRAW)]);
}
END_TEST

START_TEST(bad_arguments)
{
	const struct incstack_subgraph_options wrong[] = {
		{.size = 1},
		{.size = sizeof(wrong[0]), .scheme = 2},
		{.size = sizeof(wrong[0]), .flags = 2},
	};
	struct incstack_subgraph_options options = {.size = sizeof(options), .method_limit = 2};
	struct incstack_subgraph_stats stats = {.size = sizeof(stats)};
	struct incstack_subgraph_change change;
	struct incstack_subgraph *s;
	const uint64_t unknown = 77;
	struct incstack_method twice[2] = {{.method = 5, .name = RUN}, {.method = 5, .name = WORK}};
	struct incstack_class added = {
		.size = sizeof(added), .class_id = A, .method_count = 2, .methods = twice};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_int_eq(incstack_subgraph_create(&wrong[i], &s), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_subgraph_create(NULL, &s), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_subgraph_create(&options, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_subgraph_create(&options, &subgraph), 0);
	ck_assert_int_eq(incstack_subgraph_add_class(subgraph, &added), INCSTACK_EINVAL);
	twice[1].method = 6;
	twice[1].flags = 1u << 20;
	ck_assert_int_eq(incstack_subgraph_add_class(subgraph, &added), INCSTACK_EINVAL);
	twice[1].flags = 0;
	twice[1].call_count = 1;
	ck_assert_int_eq(incstack_subgraph_add_class(subgraph, &added), INCSTACK_EINVAL);
	twice[1].call_count = 0;
	added.supers = &unknown;
	added.super_count = 1;
	ck_assert_int_eq(incstack_subgraph_add_class(subgraph, &added), INCSTACK_EINVAL);
	added.super_count = 0;
	ck_assert_int_eq(incstack_subgraph_add_class(subgraph, &added), 0);
	ck_assert_int_eq(incstack_subgraph_add_class(subgraph, &added), INCSTACK_EINVAL);
	added.class_id = B;
	ck_assert_int_eq(incstack_subgraph_add_class(subgraph, &added),
			 INCSTACK_EINVAL); /* numbers */
	twice[0].method = 7;
	twice[1].method = 8;
	ck_assert_int_eq(incstack_subgraph_add_class(subgraph, &added), INCSTACK_ELIMIT);
	ck_assert_int_eq(incstack_subgraph_remove_class(subgraph, B), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_subgraph_class_seen(subgraph, B), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_subgraph_remove_root(subgraph, A, RUN), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_subgraph_next_change(subgraph, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_subgraph_next_change(NULL, &change), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_subgraph_method_entered(NULL, 5), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_subgraph_method_called(NULL, 5), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_subgraph_method_entered(subgraph, 99), 0);
	ck_assert_int_eq(incstack_subgraph_stats(subgraph, &stats), 0);
	ck_assert_uint_eq(stats.classes, 1);
	ck_assert_uint_eq(stats.methods, 2);
	ck_assert_uint_eq(stats.refused, 1);
	stats.size = 1;
	ck_assert_int_eq(incstack_subgraph_stats(subgraph, &stats), INCSTACK_EINVAL);
	incstack_subgraph_destroy(NULL);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("subgraph");
	TCase *rules = tcase_create("rules");

	tcase_add_checked_fixture(rules, NULL, teardown);
	tcase_add_test(rules, static_calls);
	tcase_add_test(rules, virtual_calls);
	tcase_add_test(rules, callees_after_the_first_run);
	tcase_add_test(rules, receivers_that_were_seen);
	tcase_add_test(rules, limits_and_code_that_stays);
	tcase_add_test(rules, diamonds_of_interfaces);
	tcase_add_test(rules, bad_arguments);
	suite_add_tcase(suite, rules);
	return suite;
}

int main(void)
{
	return run_suite(make_suite());
}
