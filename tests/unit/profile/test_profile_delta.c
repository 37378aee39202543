/* SPDX-License-Identifier: MIT
 *
 * Tests the difference of two profiles with random ones: nothing is lost, nothing that is equal is listed, and the
 * other direction has the opposite signs.
 */
#include <math.h>
#include <stdlib.h>

#include "profile/delta.h"
#include "profile/nodes.h"
#include "random_profile.h"
#include "run_suite.h"

static const char *const names[] = {"main", "f", "g", "h", "i", "j", "k", "leak"};
enum { NAMES = 8, ROUNDS = 200 };

static struct incstack__kind_delta weigh(const struct incstack_profile *before,
					 const struct incstack_profile *after, uint32_t kind,
					 bool shares, struct incstack__delta **delta)
{
	struct incstack__kind_delta of;

	ck_assert_int_eq(incstack__delta_create(before, after, delta), 0);
	ck_assert_int_eq(incstack__delta_weigh(*delta, kind, kind, shares, &of), 0);
	return of;
}

static uint64_t own_of(const struct incstack_profile *profile, uint32_t kind, const char *name)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i < incstack_profile_nodes(profile); i++) {
		struct incstack_profile_node node = {.size = sizeof(node)};

		ck_assert_int_eq(incstack_profile_node(profile, i, &node), 0);
		if (node.frame.name_length == strlen(name) &&
		    !memcmp(node.frame.name, name, node.frame.name_length))
			sum += node.weights[kind];
	}
	return sum;
}

static const struct incstack__change *find(const struct incstack__changes *changes,
					   const char *name)
{
	for (size_t i = 0; i < changes->count; i++)
		if (!strcmp(changes->at[i].name, name))
			return &changes->at[i];
	return NULL;
}

/* All differences together are the difference of the totals; the largest are first. */
static void adds_up(const struct incstack__kind_delta *of, const struct incstack__changes *changes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < changes->count; i++) {
		sum += changes->at[i].after - changes->at[i].before;
		ck_assert(changes->at[i].after != changes->at[i].before);
		if (i)
			ck_assert(fabs(changes->at[i - 1].by) >= fabs(changes->at[i].by));
	}
	ck_assert_int_eq((int64_t)sum, (int64_t)(of->after - of->before));
}

static void functions_are_exact(const struct incstack_profile *before,
				const struct incstack_profile *after, uint32_t kind,
				const struct incstack__kind_delta *of)
{
	for (int i = 0; i < NAMES; i++) {
		const uint64_t a = own_of(before, kind, names[i]),
			       b = own_of(after, kind, names[i]);
		const struct incstack__change *change = find(&of->functions, names[i]);

		ck_assert_int_eq(change != NULL, a != b);
		if (!change)
			continue;
		ck_assert_uint_eq(change->before, a);
		ck_assert_uint_eq(change->after, b);
	}
}

static void is_only_one(const struct incstack__kind_delta *of, uint32_t line, uint32_t end)
{
	const struct incstack__change *lines = of->lines.at;

	for (uint32_t i = line + 1; i < end; i++)
		ck_assert(lines[i].line != lines[line].line ||
			  strcmp(lines[i].file, lines[line].file) != 0);
}

/* Frames without a line are no line. Whether they are inlined makes no difference. */
static void lines_are_within_functions(const struct incstack__kind_delta *of)
{
	size_t next = 0;

	for (size_t i = 0; i < of->functions.count; i++) {
		const struct incstack__change *f = &of->functions.at[i];

		if (f->count)
			ck_assert_uint_eq(f->first, next);
		next += f->count;
		for (uint32_t k = f->first; k < f->first + f->count; k++) {
			ck_assert_str_eq(of->lines.at[k].name, f->name);
			ck_assert_int_ge(of->lines.at[k].line, 1);
			ck_assert(of->lines.at[k].before <= f->before);
			ck_assert(of->lines.at[k].after <= f->after);
			ck_assert(of->lines.at[k].before != of->lines.at[k].after);
			is_only_one(of, k, f->first + f->count);
		}
	}
	ck_assert_uint_eq(next, of->lines.count);
}

static void is_opposite(const struct incstack__changes *there, const struct incstack__changes *back)
{
	ck_assert_uint_eq(there->count, back->count);
	for (size_t i = 0; i < there->count; i++) {
		const struct incstack__change *other = find(back, there->at[i].name);

		ck_assert_ptr_nonnull(other);
		ck_assert_uint_eq(other->before, there->at[i].after);
		ck_assert_uint_eq(other->after, there->at[i].before);
		ck_assert(other->by == -there->at[i].by);
	}
}

START_TEST(differences_add_up_and_are_exact)
{
	uint64_t state = (uint64_t)_i;
	struct incstack_profile *a =
		random_profile(&state, 1 + random_number(&state, 60), names, 8);
	struct incstack_profile *b =
		random_profile(&state, 1 + random_number(&state, 60), names, 8);
	struct incstack__delta *there, *back;

	for (uint32_t kind = 0; kind < 4; kind++) {
		struct incstack__kind_delta ab = weigh(a, b, kind, false, &there);
		struct incstack__kind_delta ba = weigh(b, a, kind, false, &back);

		adds_up(&ab, &ab.functions);
		adds_up(&ab, &ab.contexts);
		functions_are_exact(a, b, kind, &ab);
		lines_are_within_functions(&ab);
		is_opposite(&ab.functions, &ba.functions);
		ck_assert_uint_eq(ab.contexts.count, ba.contexts.count);
		ck_assert_uint_eq(ab.lines.count, ba.lines.count);
		incstack__kind_delta_free(&ab);
		incstack__kind_delta_free(&ba);
		incstack__delta_destroy(there);
		incstack__delta_destroy(back);
	}
	incstack_profile_destroy(a);
	incstack_profile_destroy(b);
}
END_TEST

/* Also for one that is three times another, if shares are compared. */
START_TEST(equal_profiles_do_not_differ)
{
	uint64_t state = (uint64_t)_i;
	struct incstack_profile *a = random_profile(&state, 40, names, NAMES), *thrice = NULL;
	struct incstack__delta *delta;

	ck_assert_int_eq(
		incstack_profile_create((struct incstack_profile_kind[]){{"allocated", "bytes"},
									 {"allocations", "count"},
									 {"live at peak", "bytes"},
									 {"live at exit", "bytes"}},
					4, &thrice),
		0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(incstack_profile_merge(thrice, a), 0);
	for (int shares = 0; shares < 2; shares++) {
		struct incstack__kind_delta of = weigh(a, shares ? thrice : a, 3, shares, &delta);

		ck_assert_uint_eq(of.functions.count + of.lines.count + of.contexts.count, 0);
		ck_assert_uint_eq(of.after, of.before * (shares ? 3 : 1));
		incstack__kind_delta_free(&of);
		incstack__delta_destroy(delta);
	}
	incstack_profile_destroy(a);
	incstack_profile_destroy(thrice);
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
	uint64_t state = 1;
	struct incstack_profile *a = random_profile(&state, 3, names, NAMES);
	struct incstack__kind_delta of;
	struct incstack__delta *delta;

	ck_assert_int_eq(incstack__delta_create(a, NULL, &delta), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__delta_create(a, a, &delta), 0);
	ck_assert_int_eq(incstack__delta_weigh(delta, 4, 0, false, &of), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__delta_weigh(delta, 0, 4, false, &of), INCSTACK_EINVAL);
	incstack__delta_destroy(delta);
	incstack__delta_destroy(NULL);
	incstack_profile_destroy(a);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("delta");
	Suite *suite = suite_create("profile");

	tcase_add_loop_test(tests, differences_add_up_and_are_exact, 0, ROUNDS);
	tcase_add_loop_test(tests, equal_profiles_do_not_differ, 0, ROUNDS);
	tcase_add_test(tests, wrong_arguments_are_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
