/* SPDX-License-Identifier: MIT
 *
 * The call subgraph: random programs against a search that follows the definitions word by word.
 */
#include <check.h>
#include <stdbool.h>
#include <string.h>

#include <incstack/instrument.h>

#include "changed.h"
#include "run_suite.h"

enum { MANY = 24, CLASSES = 30, NAMES = 6, METHODS = CLASSES * NAMES, SITES = 3 };

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
				m->sites[i] = (struct incstack_call_site){below(CLASSES),
									  below(NAMES), below(2)};
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
		if (below(20) == 0 && model.is_loaded[c] && model.methods[c][n].exists &&
		    has_root()) {
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
	Suite *suite = suite_create("random subgraphs");
	TCase *random = tcase_create("random");

	tcase_add_checked_fixture(random, NULL, teardown);
	tcase_add_loop_test(random, random_programs, 0, MANY);
	suite_add_tcase(suite, random);
	return suite;
}

int main(void)
{
	return run_suite(make_suite());
}
