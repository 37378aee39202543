/* SPDX-License-Identifier: MIT
 *
 * Tests what takes things out of a profile: looking through allocators, focus, suppressions. Some profiles are worked out
 * by hand; random ones have the properties that all profiles must have.
 */
#include <stdlib.h>

#include "profile/allocators.h"
#include "profile/analysis.h"
#include "profile/delta.h"
#include "profile/filter.h"
#include "profile/nodes.h"
#include "profile/timeline.h"
#include "profile_files.h"
#include "random_profile.h"
#include "run_suite.h"

enum { ROUNDS = 200, FUNCTIONS_MAX = 64 };

static const char *const names[] = {
	"main",         "f",          "g", "session",   "xmalloc", "my_alloc",
	"operator new", "pool_alloc", "h", "do_strdup", "i"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static void folds_to(const struct incstack_profile *profile, const char *expected)
{
	char *folded = folded_text(profile, 0);

	ck_assert_str_eq(folded, expected);
	free(folded);
}

static struct incstack__looked look_through(struct incstack_profile *profile, bool known,
					    const struct incstack__patterns *skip)
{
	struct incstack__allocators *functions;
	struct incstack__looked looked;

	ck_assert_int_eq(incstack__allocators_find(profile, known, skip, &functions), 0);
	ck_assert_int_eq(incstack__profile_look_through(profile, functions, &looked), 0);
	incstack__allocators_free(functions);
	return looked;
}

static void looks_like(const char *before, const char *after)
{
	struct incstack_profile *profile = profile_from(before);

	(void)look_through(profile, true, NULL);
	folds_to(profile, after);
	incstack_profile_destroy(profile);
}

static bool is_one(const char *name)
{
	return incstack__is_allocator(name, strlen(name));
}

/* ---- looking through ------------------------------------------------------------------- */

START_TEST(own_weights_go_to_the_caller)
{
	looks_like("main;f;xmalloc 5\nmain;g;operator new(unsigned long) 7\nmain 1\n",
		   "main 1\nmain;f 5\nmain;g 7\n");
	/* Through several, and several times. */
	looks_like("main;f;xmalloc;xrealloc 5\nmain;f;xmalloc 2\nmain;f 1\n", "main;f 8\n");
	/* An allocator with another callee stays there, and so does what that has. */
	looks_like("main;xmalloc 5\nmain;xmalloc;collect 3\nmain;xmalloc;collect;xmalloc 2\n",
		   "main 5\nmain;xmalloc;collect 5\n");
	/* Nobody has called it. */
	looks_like("xmalloc 5\nxmalloc;xmalloc 3\nxmalloc;main 1\n",
		   "xmalloc 5\nxmalloc;main 1\nxmalloc;xmalloc 3\n");
	looks_like("", "");
}
END_TEST

START_TEST(users_name_others)
{
	static const char *const skip[] = {"grow*", "h"};
	const struct incstack__patterns patterns = {skip, 2};
	struct incstack_profile *profile =
		profile_from("main;f;growing(int) 5\nmain;h 2\nmain;h;i 1\nmain;xmalloc 3\n");
	struct incstack__looked looked = look_through(profile, false, &patterns);

	folds_to(profile, "main 2\nmain;f 5\nmain;h;i 1\nmain;xmalloc 3\n");
	ck_assert_uint_eq(looked.count, 2);
	ck_assert_str_eq(looked.at[0].name, "growing");
	ck_assert_str_eq(looked.at[1].name, "h");
	ck_assert(!looked.at[0].is_guessed);
	ck_assert_int_eq(incstack__profile_look_through(profile, NULL, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__allocators_find(NULL, true, NULL, NULL), INCSTACK_EINVAL);
	incstack_profile_destroy(profile);
}
END_TEST

/* Adds a context of a heap profile: main > caller > functions..., separated by spaces. */
static void add(struct incstack_profile *profile, const char *path, uint64_t bytes, uint64_t calls)
{
	const uint64_t weights[4] = {bytes, calls, 0, 0};
	char *copy = strdup(path), *save = NULL;
	uint32_t node = INCSTACK_PROFILE_ROOT;

	for (char *name = strtok_r(copy, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
		const struct incstack_profile_frame frame = {.size = sizeof(frame),
							     .name = name,
							     .name_length = strlen(name),
							     .position = -1};

		ck_assert_int_eq(incstack_profile_add_node(profile, node, &frame, &node), 0);
	}
	ck_assert_int_eq(incstack_profile_add_weights(profile, node, weights), 0);
	free(copy);
}

static struct incstack_profile *heap_profile(void)
{
	uint64_t state = 0;

	return random_profile(&state, 0, names, NAMES);
}

static struct incstack__looked look(struct incstack_profile *profile)
{
	return look_through(profile, true, NULL);
}

/* A wrapper hands out what its callers ask for; a maker hands out objects of one size. */
START_TEST(wrappers_are_guessed_and_makers_are_not)
{
	struct incstack_profile *profile = heap_profile();
	struct incstack__looked looked;

	add(profile, "main f my_alloc", 100, 10);
	add(profile, "main g my_alloc", 200, 10);
	add(profile, "main h my_alloc", 300, 10);
	add(profile, "main f node_alloc", 320, 10);
	add(profile, "main g node_alloc", 640, 20);
	add(profile, "main h node_alloc", 960, 30);
	add(profile, "main f two_alloc", 1, 1);
	add(profile, "main g two_alloc", 2, 1);
	add(profile, "main f busy_alloc", 1, 1);
	add(profile, "main g busy_alloc", 2, 1);
	add(profile, "main h busy_alloc", 3, 1);
	add(profile, "main h busy_alloc collect", 3, 1);
	add(profile, "main f grow", 5, 1);
	add(profile, "main g grow", 6, 1);
	add(profile, "main h grow", 7, 1);
	looked = look(profile);
	ck_assert_uint_eq(looked.count, 1);
	ck_assert_str_eq(looked.at[0].name, "my_alloc");
	ck_assert(looked.at[0].is_guessed);
	incstack_profile_destroy(profile);
}
END_TEST

/* What is found before other contexts are taken out also counts in those that stay. */
START_TEST(a_focus_does_not_change_what_is_guessed)
{
	static const char *const f[] = {"f"};
	struct incstack_profile *profile = heap_profile();
	struct incstack__allocators *functions;
	uint64_t left[INCSTACK_PROFILE_KINDS_MAX];

	add(profile, "main f my_alloc", 100, 10);
	add(profile, "main g my_alloc", 200, 10);
	add(profile, "main h my_alloc", 300, 10);
	ck_assert_int_eq(incstack__allocators_find(profile, true, NULL, &functions), 0);
	ck_assert_int_eq(
		incstack__profile_focus(profile, &(struct incstack__patterns){f, 1}, false, left),
		0);
	ck_assert_int_eq(incstack__profile_look_through(profile, functions, NULL), 0);
	folds_to(profile, "main;f 100\n");
	incstack__allocators_free(functions);
	incstack_profile_destroy(profile);
}
END_TEST

/* The inner one has one caller, which is an allocator, too. */
START_TEST(chains_of_wrappers_are_guessed)
{
	struct incstack_profile *profile = heap_profile();

	add(profile, "main f outer_alloc innerMalloc", 100, 10);
	add(profile, "main g outer_alloc innerMalloc", 200, 10);
	add(profile, "main h outer_alloc innerMalloc", 300, 10);
	ck_assert_uint_eq(look(profile).count, 1); /* that had weight of its own */
	folds_to(profile, "main;f 100\nmain;g 200\nmain;h 300\n");
	incstack_profile_destroy(profile);
}
END_TEST

static void sum_functions(const struct incstack_profile *profile, uint32_t kind,
			  struct incstack__profile_function *functions, size_t *count)
{
	*count = FUNCTIONS_MAX;
	ck_assert_int_eq(incstack__profile_functions(profile, kind, functions, count), 0);
}

static const struct incstack__profile_function *
find(const struct incstack__profile_function *functions, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	return NULL;
}

static uint64_t total_of(const struct incstack_profile *profile, uint32_t kind)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < incstack_profile_nodes(profile); i++)
		sum += incstack__profile_self(profile, i, kind);
	return sum;
}

static struct incstack_profile *copy_of(const struct incstack_profile *profile)
{
	struct incstack_profile *copy = heap_profile();

	ck_assert_int_eq(incstack_profile_merge(copy, profile), 0);
	return copy;
}

/* Totals stay, and so do the sums of functions that are no allocators, with their callees. Their own weights do not
 * shrink, and no allocator's grows. */
static void is_right(const struct incstack_profile *before, const struct incstack_profile *after,
		     uint32_t kind, const struct incstack__patterns *others)
{
	struct incstack__profile_function a[FUNCTIONS_MAX], b[FUNCTIONS_MAX];
	size_t a_count, b_count;

	ck_assert_uint_eq(total_of(before, kind), total_of(after, kind));
	sum_functions(before, kind, a, &a_count);
	sum_functions(after, kind, b, &b_count);
	for (size_t i = 0; i < others->count; i++) {
		const struct incstack__profile_function *x = find(a, a_count, others->at[i]);
		const struct incstack__profile_function *y = find(b, b_count, others->at[i]);

		ck_assert_uint_eq(x ? x->total : 0, y ? y->total : 0);
		ck_assert(!x || x->self <= y->self);
	}
	for (size_t i = 0; i < b_count; i++) {
		const struct incstack__profile_function *x = find(a, a_count, b[i].name);

		ck_assert_ptr_nonnull(x);
		if (is_one(b[i].name))
			ck_assert(b[i].self <= x->self && b[i].total <= x->total);
	}
}

START_TEST(looking_through_keeps_all_sums)
{
	static const char *const others[] = {"main", "f", "g", "h", "i", "session"};
	const struct incstack__patterns plain = {others, 6};
	uint64_t state = (uint64_t)_i;
	struct incstack_profile *before =
		random_profile(&state, 1 + random_number(&state, 80), names, NAMES);
	struct incstack_profile *after = copy_of(before), *again;

	(void)look(after);
	for (uint32_t kind = 0; kind < 4; kind++)
		is_right(before, after, kind, &plain);
	/* No allocator that has a caller has weight. */
	for (uint32_t i = 1; i < incstack_profile_nodes(after); i++) {
		struct incstack_profile_node node = {.size = sizeof(node)};
		bool has_caller = false;

		ck_assert_int_eq(incstack_profile_node(after, i, &node), 0);
		if (!incstack__is_allocator(node.frame.name, node.frame.name_length))
			continue;
		for (uint32_t n = node.parent; n; n = incstack__profile_parent(after, n)) {
			struct incstack_profile_node up = {.size = sizeof(up)};

			ck_assert_int_eq(incstack_profile_node(after, n, &up), 0);
			has_caller |=
				!incstack__is_allocator(up.frame.name, up.frame.name_length) &&
				!incstack__sounds_like_allocator(up.frame.name,
								 up.frame.name_length);
		}
		ck_assert(!has_caller || !incstack__profile_weighs(after, i));
	}
	again = copy_of(after);
	(void)look(again);
	for (uint32_t kind = 0; kind < 4; kind++)
		is_right(after, again, kind, &plain);
	incstack_profile_destroy(before);
	incstack_profile_destroy(after);
	incstack_profile_destroy(again);
}
END_TEST

/* The profile has its total, besides all weights. */
static void knows_its_total(const struct incstack_profile *profile, uint32_t kind)
{
	struct incstack__delta *delta;
	struct incstack__kind_delta of;

	ck_assert_int_eq(incstack__delta_create(profile, profile, &delta), 0);
	ck_assert_int_eq(incstack__delta_weigh(delta, kind, kind, false, &of), 0);
	ck_assert_uint_eq(of.before, total_of(profile, kind));
	incstack__kind_delta_free(&of);
	incstack__delta_destroy(delta);
}

/* ---- focus ------------------------------------------------------------------------------ */

START_TEST(contexts_with_a_function_stay)
{
	static const char *const f[] = {"f"};
	const struct incstack__patterns patterns = {f, 1};
	struct incstack_profile *profile =
		profile_from("main 1\nmain;f 2\nmain;f;g 4\nmain;g 8\nmain;g;f;h 16\n");
	uint64_t left[INCSTACK_PROFILE_KINDS_MAX];

	ck_assert_int_eq(incstack__profile_focus(profile, &patterns, false, left), 0);
	folds_to(profile, "main;f 2\nmain;f;g 4\nmain;g;f;h 16\n");
	ck_assert_uint_eq(left[0], 9);
	knows_its_total(profile, 0);
	ck_assert_int_eq(incstack__profile_focus(profile, &patterns, true, left), 0);
	folds_to(profile, "");
	ck_assert_uint_eq(left[0], 22);
	incstack_profile_destroy(profile);
}
END_TEST

/* What is inside and what is outside are all of it. */
START_TEST(inside_and_outside_are_all)
{
	const struct incstack__patterns patterns = {names + _i % NAMES, 1 + (size_t)_i % 2};
	uint64_t state = (uint64_t)_i, out_of[INCSTACK_PROFILE_KINDS_MAX];
	struct incstack_profile *all = random_profile(&state, 60, names, NAMES);
	struct incstack_profile *inside = copy_of(all), *outside = copy_of(all);

	if (_i % NAMES + _i % 2 < NAMES) {
		ck_assert_int_eq(incstack__profile_focus(inside, &patterns, false, out_of), 0);
		for (uint32_t kind = 0; kind < 4; kind++)
			ck_assert_uint_eq(total_of(inside, kind) + out_of[kind],
					  total_of(all, kind));
		ck_assert_int_eq(incstack__profile_focus(outside, &patterns, true, out_of), 0);
		ck_assert_int_eq(incstack_profile_merge(inside, outside), 0);
		for (uint32_t kind = 0; kind < 4; kind++) {
			char *one = folded_text(all, kind), *other = folded_text(inside, kind);

			ck_assert_str_eq(one, other);
			free(one);
			free(other);
		}
	}
	incstack_profile_destroy(all);
	incstack_profile_destroy(inside);
	incstack_profile_destroy(outside);
}
END_TEST

/* Samples of removed contexts go; others follow their context, or their weight. */
START_TEST(timelines_follow)
{
	static const char *const skip[] = {"g"}, *const focus[] = {"f"};
	const struct incstack__profile_thread thread = {"t", 1};
	const struct incstack__profile_sample samples[] = {
		{10, 1, 0, 2, 0}, {20, 2, 0, 3, 0}, {30, 4, 0, 4, 0}};
	const struct incstack__profile_timeline timeline = {&thread, samples, 1, 3};
	struct incstack_profile *profile = profile_from("main;f 1\nmain;f;g 2\nmain;h 4\n");
	uint64_t left[INCSTACK_PROFILE_KINDS_MAX];
	struct bytes page;

	ck_assert_int_eq(incstack__profile_set_timeline(profile, &timeline), 0);
	(void)look_through(profile, false, &(struct incstack__patterns){skip, 1});
	folds_to(profile, "main;f 3\nmain;h 4\n");
	ck_assert_int_eq(incstack__profile_focus(profile, &(struct incstack__patterns){focus, 1},
						 false, left),
			 0);
	folds_to(profile, "main;f 3\n");
	page = write_bytes(profile, INCSTACK_FORMAT_FIREFOX, 0);
	ck_assert_ptr_nonnull(strstr(page.at, "\"weight\":[1,2]"));
	free(page.at);
	incstack_profile_destroy(profile);
}
END_TEST

/* ---- suppressions ----------------------------------------------------------------------- */

START_TEST(known_leaks_are_taken_out_of_one_kind)
{
	static const char *const text[] = {"*sess*", "*b.c", "*libx*"};
	const struct incstack__patterns patterns = {text, 3};
	uint64_t state = (uint64_t)_i, contexts, weight;
	struct incstack_profile *before = random_profile(&state, 60, names, NAMES);
	struct incstack_profile *after = copy_of(before);
	bool known[64 + 1] = {false};
	uint64_t expected = 0, count = 0;

	for (uint32_t i = 1; i < incstack_profile_nodes(before); i++) {
		struct incstack_profile_node node = {.size = sizeof(node)};

		ck_assert_int_eq(incstack_profile_node(before, i, &node), 0);
		known[i] = known[node.parent] || !strcmp(node.frame.file, "b.c") ||
			   node.frame.module ||
			   !strncmp(node.frame.name, "session", node.frame.name_length);
		expected += known[i] ? node.weights[3] : 0;
		count += known[i] && node.weights[3];
	}
	ck_assert_int_eq(incstack__profile_suppress(after, 3, &patterns, &contexts, &weight), 0);
	knows_its_total(after, 3);
	ck_assert_uint_eq(weight, expected);
	ck_assert_uint_eq(contexts, count);
	for (uint32_t kind = 0; kind < 4; kind++)
		ck_assert_uint_eq(total_of(after, kind) + (kind == 3 ? weight : 0),
				  total_of(before, kind));
	ck_assert_int_eq(incstack__profile_suppress(after, 4, &patterns, &contexts, &weight),
			 INCSTACK_EINVAL);
	incstack_profile_destroy(before);
	incstack_profile_destroy(after);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("filter");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, own_weights_go_to_the_caller);
	tcase_add_test(tests, users_name_others);
	tcase_add_test(tests, wrappers_are_guessed_and_makers_are_not);
	tcase_add_test(tests, a_focus_does_not_change_what_is_guessed);
	tcase_add_test(tests, chains_of_wrappers_are_guessed);
	tcase_add_loop_test(tests, looking_through_keeps_all_sums, 0, ROUNDS);
	tcase_add_test(tests, contexts_with_a_function_stay);
	tcase_add_loop_test(tests, inside_and_outside_are_all, 0, ROUNDS);
	tcase_add_test(tests, timelines_follow);
	tcase_add_loop_test(tests, known_leaks_are_taken_out_of_one_kind, 0, ROUNDS);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
