/* SPDX-License-Identifier: MIT
 *
 * The call subgraph: single rules by small examples, and random programs against a search that follows the
 * definitions word by word.
 */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/instrument.h>

#include "run_suite.h"

enum { OBJECT = 1, A, B, C, SHAPE };    /* classes */
enum { RUN = 100, WORK, DRAW, OTHER };  /* names */
enum { MANY = 24 };

static struct incstack_subgraph *subgraph;
static bool made[200000]; /* methods that are instrumented, as the changes said */

static void create(uint32_t scheme, uint32_t flags)
{
	const struct incstack_subgraph_options options = {
		.size = sizeof(options), .scheme = scheme, .flags = flags};

	memset(made, 0, sizeof(made));
	ck_assert_int_eq(incstack_subgraph_create(&options, &subgraph), 0);
}

static void teardown(void)
{
	incstack_subgraph_destroy(subgraph);
	subgraph = NULL;
}

/* Takes all changes; returns how many there were. */
static int take_changes(void)
{
	struct incstack_subgraph_change change;
	int count = 0, got;

	while ((got = incstack_subgraph_next_change(subgraph, &change)) == 1) {
		ck_assert_uint_lt(change.method, sizeof(made));
		ck_assert(made[change.method] == (change.action == INCSTACK_CHANGE_RESTORE));
		made[change.method] = !made[change.method];
		count++;
	}
	ck_assert_int_eq(got, 0);
	return count;
}

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
		methods[i] = (struct incstack_method){number_of(class_id, list[i].name), list[i].name,
						      list[i].flags, list[i].call_count,
						      list[i].calls};
	return incstack_subgraph_add_class(subgraph, &added);
}

#define LOAD(class_id, super, interface, ...)                                                      \
	ck_assert_int_eq(load(class_id, super, interface, (struct listed[]){__VA_ARGS__},           \
			      sizeof((struct listed[]){__VA_ARGS__}) / sizeof(struct listed)),      \
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
	LOAD(A, OBJECT, 0, {RUN, 0, {{A, WORK, INCSTACK_CALL_STATIC}, {B, WORK, INCSTACK_CALL_STATIC}}, 2},
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
	LOAD(A, 0, 0, {RUN, 0, {{A, WORK, INCSTACK_CALL_STATIC}, {A, DRAW, INCSTACK_CALL_STATIC}}, 2},
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
	ck_assert_int_eq(incstack_subgraph_add_class(subgraph, &added), INCSTACK_EINVAL); /* numbers */
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

/* ---- random programs ------------------------------------------------------------------------- */

enum { CLASSES = 30, NAMES = 6, METHODS = CLASSES * NAMES, SITES = 3 };

struct model_method {
	bool exists, is_abstract, is_fixed, is_opaque;
	uint32_t site_count;
	struct incstack_call_site sites[SITES];
};

/* A program, all classes of it. A class extends classes with smaller numbers. */
static struct model {
	struct model_method methods[CLASSES][NAMES];
	int super[CLASSES], interface[CLASSES]; /* -1: none */
	bool is_loaded[CLASSES], is_seen[CLASSES];
	bool is_root[CLASSES][NAMES];
	bool is_entered[CLASSES][NAMES];
	bool is_called[CLASSES][NAMES];
	uint32_t scheme, flags;
} model;

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % n);
}

static void make_model(void)
{
	memset(&model, 0, sizeof(model));
	model.scheme = below(2);
	model.flags = below(2) ? INCSTACK_SUBGRAPH_RECEIVERS : 0;
	for (int c = 0; c < CLASSES; c++) {
		model.super[c] = c > 0 && below(4) ? (int)below((uint32_t)c) : -1;
		model.interface[c] = c > 0 && below(3) == 0 ? (int)below((uint32_t)c) : -1;
		if (model.interface[c] == model.super[c])
			model.interface[c] = -1;
		for (int n = 0; n < NAMES; n++) {
			struct model_method *m = &model.methods[c][n];

			m->exists = below(3) == 0;
			m->is_abstract = below(6) == 0;
			m->is_fixed = below(8) == 0;
			m->is_opaque = below(12) == 0;
			m->site_count = below(SITES + 1);
			for (uint32_t i = 0; i < m->site_count; i++)
				m->sites[i] = (struct incstack_call_site){below(CLASSES), below(NAMES),
									  below(2)};
		}
	}
}

/* Finds the class whose method a name means: the superclass first. */
static int find_class(int c, uint64_t name)
{
	int found;

	if (c < 0 || !model.is_loaded[c])
		return -1;
	if (model.methods[c][name].exists && !model.methods[c][name].is_abstract)
		return c;
	found = find_class(model.super[c], name);
	return found >= 0 ? found : find_class(model.interface[c], name);
}

static bool extends(int c, int from)
{
	if (c < 0 || !model.is_loaded[c])
		return false;
	return c == from || extends(model.super[c], from) || extends(model.interface[c], from);
}

static bool reached[CLASSES][NAMES];

static void reach(int c, uint64_t name);

static void follow_site(const struct incstack_call_site *site)
{
	const int named = (int)site->class_id;

	if (!model.is_loaded[named])
		return;
	if (site->kind == INCSTACK_CALL_STATIC) {
		reach(find_class(named, site->name), site->name);
		return;
	}
	for (int c = 0; c < CLASSES; c++)
		if (extends(c, named) && (model.is_seen[c] || !model.flags))
			reach(find_class(c, site->name), site->name);
}

static void reach(int c, uint64_t name)
{
	const struct model_method *m;

	if (c < 0 || reached[c][name])
		return;
	reached[c][name] = true;
	m = &model.methods[c][name];
	if (m->is_opaque || (model.scheme == INCSTACK_SUBGRAPH_CALLED && !m->is_fixed &&
			     !model.is_entered[c][name]))
		return;
	for (uint32_t i = 0; i < m->site_count; i++)
		follow_site(&m->sites[i]);
}

static bool has_root(void)
{
	for (int c = 0; c < CLASSES; c++)
		for (int n = 0; n < NAMES; n++)
			if (model.is_root[c][n])
				return true;
	return false;
}

/* Compares what is instrumented with the definitions. After a class is gone, what it called may stay. */
static void compare(bool may_have_more)
{
	memset(reached, 0, sizeof(reached));
	for (int c = 0; c < CLASSES; c++)
		for (uint64_t n = 0; n < NAMES; n++) {
			if (model.is_root[c][n])
				reach(find_class(c, n), n);
			if (model.is_called[c][n])
				reach(c, n);
		}
	for (int c = 0; c < CLASSES; c++)
		for (int n = 0; n < NAMES; n++) {
			const struct model_method *m = &model.methods[c][n];
			const bool is_right = reached[c][n] && !m->is_fixed && !m->is_opaque;
			const bool is_made = made[c * NAMES + n];

			ck_assert_msg(is_made == is_right || (may_have_more && is_made),
				      "method %d of class %d: %d, not %d", n, c, is_made, is_right);
		}
}

static int load_class(int c)
{
	struct incstack_method methods[NAMES];
	uint64_t supers[2];
	struct incstack_class added = {.size = sizeof(added),
				       .class_id = (uint64_t)c,
				       .supers = supers,
				       .methods = methods};

	if (model.super[c] >= 0)
		supers[added.super_count++] = (uint64_t)model.super[c];
	if (model.interface[c] >= 0)
		supers[added.super_count++] = (uint64_t)model.interface[c];
	for (int n = 0; n < NAMES; n++) {
		const struct model_method *m = &model.methods[c][n];

		if (m->exists)
			methods[added.method_count++] = (struct incstack_method){
				.method = (uint64_t)(c * NAMES + n),
				.name = (uint64_t)n,
				.flags = (m->is_abstract ? INCSTACK_METHOD_ABSTRACT : 0u) |
					 (m->is_fixed ? INCSTACK_METHOD_FIXED : 0u) |
					 (m->is_opaque ? INCSTACK_METHOD_OPAQUE : 0u),
				.call_count = m->site_count,
				.calls = m->sites};
	}
	return incstack_subgraph_add_class(subgraph, &added);
}

static bool has_supers(int c)
{
	return (model.super[c] < 0 || model.is_loaded[model.super[c]]) &&
	       (model.interface[c] < 0 || model.is_loaded[model.interface[c]]);
}

static bool has_subclass(int from)
{
	for (int c = 0; c < CLASSES; c++)
		if (c != from && extends(c, from))
			return true;
	return false;
}

static void unload_class(int c)
{
	ck_assert_int_eq(incstack_subgraph_remove_class(subgraph, (uint64_t)c), 0);
	model.is_loaded[c] = model.is_seen[c] = false;
	for (int n = 0; n < NAMES; n++) {
		made[c * NAMES + n] = false;
		model.is_entered[c][n] = model.is_called[c][n] = false;
	}
}

static void change_root(int c, int n, bool *may_have_more)
{
	if (!model.is_root[c][n]) {
		ck_assert_int_eq(incstack_subgraph_add_root(subgraph, (uint64_t)c, (uint64_t)n), 0);
		model.is_root[c][n] = true;
		return;
	}
	ck_assert_int_eq(incstack_subgraph_remove_root(subgraph, (uint64_t)c, (uint64_t)n), 0);
	model.is_root[c][n] = false;
	memset(model.is_called, 0, sizeof(model.is_called));
	*may_have_more = false;
}

/* What was restored has not run. */
static void forget_runs(void)
{
	for (int c = 0; c < CLASSES; c++)
		for (int n = 0; n < NAMES; n++)
			if (!made[c * NAMES + n])
				model.is_entered[c][n] = false;
}

static void step(bool *may_have_more)
{
	const int c = (int)below(CLASSES), n = (int)below(NAMES);
	const uint64_t method = (uint64_t)(c * NAMES + n);

	switch (below(8)) {
	case 0:
	case 1:
		if (!model.is_loaded[c] && has_supers(c)) {
			ck_assert_int_eq(load_class(c), 0);
			model.is_loaded[c] = true;
		}
		break;
	case 2:
		if (model.is_loaded[c] && !has_subclass(c) && below(4) == 0) {
			unload_class(c);
			*may_have_more = true;
		}
		break;
	case 3:
		if (below(6) == 0)
			change_root(c, n, may_have_more);
		break;
	case 4:
		if (model.is_loaded[c]) {
			ck_assert_int_eq(incstack_subgraph_class_seen(subgraph, (uint64_t)c), 0);
			model.is_seen[c] = true;
		}
		break;
	case 5:
		if (below(20) == 0 && model.is_loaded[c] && model.methods[c][n].exists && has_root()) {
			ck_assert_int_eq(incstack_subgraph_method_called(subgraph, method), 0);
			model.is_called[c][n] = true;
		}
		break;
	default:
		ck_assert_int_eq(incstack_subgraph_method_entered(subgraph, method), 0);
		model.is_entered[c][n] |= made[method];
		break;
	}
}

START_TEST(random_programs)
{
	uint64_t compared = 0;

	seed = (uint64_t)_i * 77 + 1;
	make_model();
	create(model.scheme, model.flags);
	bool may_have_more = false;

	for (int i = 0; i < 800; i++) {
		step(&may_have_more);
		take_changes();
		forget_runs();
		compare(may_have_more);
		compared += has_root();
	}
	ck_assert_uint_gt(compared, 100);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("subgraph");
	TCase *rules = tcase_create("rules");
	TCase *random = tcase_create("random");

	tcase_add_checked_fixture(rules, NULL, teardown);
	tcase_add_test(rules, static_calls);
	tcase_add_test(rules, virtual_calls);
	tcase_add_test(rules, callees_after_the_first_run);
	tcase_add_test(rules, receivers_that_were_seen);
	tcase_add_test(rules, limits_and_code_that_stays);
	tcase_add_test(rules, diamonds_of_interfaces);
	tcase_add_test(rules, bad_arguments);
	suite_add_tcase(suite, rules);
	tcase_add_checked_fixture(random, NULL, teardown);
	tcase_add_loop_test(random, random_programs, 0, MANY);
	suite_add_tcase(suite, random);
	return suite;
}

int main(void)
{
	return run_suite(make_suite());
}
