/* SPDX-License-Identifier: MIT
 *
 * Tests the calling context tree: how traces become nodes, and that shared frame objects change
 * only the cost, not the result.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>

#include "profile_nodes.h"
#include "run_suite.h"

static const struct incstack_profile_kind kinds[] = {{"samples", "count"}, {"time", "nanoseconds"}};

enum { FILLED = INCSTACK_OBJECT_FILLED, BASE = INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_BASE };

static struct incstack_frame_object object(const struct incstack_frame_object *parent,
					   uint64_t function, int32_t position, uint32_t flags)
{
	return (struct incstack_frame_object){
		.parent = parent, .function = function, .position = position, .flags = flags};
}

static struct incstack_profile *made(void)
{
	struct incstack_profile *profile = NULL;

	ck_assert_int_eq(incstack_profile_create(kinds, 2, &profile), 0);
	return profile;
}

/* The node below parent for a function and position; NONE if there is not exactly one. */
static uint32_t child(const struct incstack_profile *profile, uint32_t parent, uint64_t function,
		      int32_t position)
{
	uint32_t found = INCSTACK_PROFILE_NONE;

	for (uint32_t n = 1; n < incstack_profile_nodes(profile); n++) {
		const struct incstack_profile_node node = node_at(profile, n);

		if (node.parent != parent || node.frame.function != function ||
		    node.frame.position != position)
			continue;
		if (found != INCSTACK_PROFILE_NONE)
			return INCSTACK_PROFILE_NONE;
		found = n;
	}
	return found;
}

START_TEST(shared_callers_become_one_node)
{
	struct incstack_profile *profile = made();
	struct incstack_frame_object base = object(NULL, 1, 0, BASE);
	struct incstack_frame_object f = object(&base, 2, 7, FILLED);
	struct incstack_frame_object g = object(&base, 2, 7, FILLED); /* an equal activation */
	struct incstack_frame_object h = object(&base, 2, 8, FILLED); /* another call site */
	struct incstack_trace t3 = {.weight = 300, .top = &h};
	struct incstack_trace t2 = {.next = &t3, .weight = 20, .top = &g};
	struct incstack_trace t1 = {.next = &t2, .weight = 10, .top = &f};
	struct incstack_tree tree = {.traces = &t1, .count = 3, .objects = 4};
	uint64_t totals[4];
	uint32_t main_node;

	ck_assert_int_eq(
		incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, &tree, NULL, NULL), 0);
	ck_assert_uint_eq(incstack_profile_nodes(profile), 4);
	main_node = child(profile, INCSTACK_PROFILE_ROOT, 1, 0);
	ck_assert_uint_eq(node_at(profile, child(profile, main_node, 2, 7)).weights[0], 2);
	ck_assert_uint_eq(node_at(profile, child(profile, main_node, 2, 7)).weights[1], 30);
	ck_assert_uint_eq(node_at(profile, child(profile, main_node, 2, 8)).weights[1], 300);
	ck_assert_int_eq(incstack_profile_totals(profile, 1, totals), 0);
	ck_assert_uint_eq(totals[0], 330);
	ck_assert_uint_eq(totals[main_node], 330);
	ck_assert_uint_eq(node_at(profile, main_node).weights[1], 0);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(recursion_and_virtual_frames_are_kept)
{
	struct incstack_profile *profile = made();
	struct incstack_frame_object base = object(NULL, 1, 0, BASE);
	struct incstack_frame_object r1 = object(&base, 2, 5, FILLED);
	struct incstack_frame_object r2 = object(&r1, 2, 5, FILLED | INCSTACK_OBJECT_VIRTUAL);
	struct incstack_frame_object r3 = object(&r2, 2, 5, FILLED);
	struct incstack_trace t = {.weight = 1, .top = &r3};
	struct incstack_tree tree = {.traces = &t, .count = 1, .objects = 4};
	struct incstack_profile_frame f;

	ck_assert_int_eq(
		incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, &tree, NULL, NULL), 0);
	ck_assert_uint_eq(incstack_profile_nodes(profile), 5);
	for (uint32_t n = 1; n < 5; n++)
		ck_assert_uint_eq(node_at(profile, n).parent, n - 1);
	f = node_at(profile, 4).frame;
	ck_assert_uint_eq(f.flags, INCSTACK_OBJECT_VIRTUAL);
	f = node_at(profile, 3).frame;
	ck_assert_uint_eq(f.flags, 0);
	incstack_profile_destroy(profile);
}
END_TEST

static uint32_t next_random(uint32_t *state);

/* Adds a trace of one frame. */
static void add_frame(struct incstack_profile *profile, uint64_t function, int32_t position,
		      uint32_t flags)
{
	const struct incstack_frame_object top = object(NULL, function, position, flags | BASE);
	struct incstack_trace trace = {.weight = 1, .top = &top};
	const struct incstack_tree tree = {.traces = &trace, .count = 1, .objects = 1};

	ck_assert_int_eq(
		incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, &tree, NULL, NULL), 0);
}

/* More frames than are remembered as looked up lately, in random order. The lowest bits of their functions
 * and positions are equal, so that they take the same places. */
START_TEST(frames_that_differ_in_one_thing_stay_apart)
{
	enum { EACH = 24, TIMES = 40000, FUNCTIONS = 1 << 16, POSITIONS = 1 << 12 };
	static uint64_t times[EACH][EACH][2];
	struct incstack_profile *profile = made();
	uint32_t random = 1;

	for (int i = 0; i < TIMES; i++) {
		const uint32_t function = next_random(&random) % EACH;
		const uint32_t position = next_random(&random) % EACH;
		const uint32_t raw = next_random(&random) % 2;

		times[function][position][raw]++;
		add_frame(profile, function * FUNCTIONS, (int32_t)position * POSITIONS,
			  raw ? INCSTACK_OBJECT_RAW : 0);
	}
	ck_assert_uint_eq(incstack_profile_nodes(profile), 1 + 2 * EACH * EACH);
	for (uint32_t n = 1; n < incstack_profile_nodes(profile); n++) {
		const struct incstack_profile_node node = node_at(profile, n);

		ck_assert_uint_eq(
			node.weights[0],
			times[node.frame.function / FUNCTIONS][node.frame.position / POSITIONS]
			     [!!(node.frame.flags & INCSTACK_OBJECT_RAW)]);
	}
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(truncated_traces_stay_apart)
{
	struct incstack_profile *profile = made();
	struct incstack_frame_object base = object(NULL, 1, 0, BASE);
	struct incstack_frame_object cut = object(NULL, 1, 0, FILLED | INCSTACK_OBJECT_TRUNCATED);
	struct incstack_trace t2 = {.weight = 1, .top = &cut};
	struct incstack_trace t1 = {.next = &t2, .weight = 1, .top = &base};
	struct incstack_tree tree = {.traces = &t1, .count = 2, .objects = 2, .truncated = 1};
	struct incstack_profile_frame f;
	uint32_t node;

	ck_assert_int_eq(
		incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, &tree, NULL, NULL), 0);
	node = child(profile, INCSTACK_PROFILE_ROOT, 1, 0);
	ck_assert_uint_eq(node_at(profile, node).weights[0], 1);
	ck_assert_uint_eq(incstack_profile_nodes(profile), 4);
	f = node_at(profile, 2).frame;
	ck_assert_uint_eq(f.name_length, strlen("[truncated]"));
	ck_assert_mem_eq(f.name, "[truncated]", f.name_length);
	ck_assert_uint_eq(node_at(profile, 3).parent, 2);
	incstack_profile_destroy(profile);
}
END_TEST

static int name_letter(void *context, const struct incstack_profile_frame *frame,
		       struct incstack_profile_source *source)
{
	static char text[2];

	++*(int *)context;
	text[0] = (char)('a' + (int)frame->function);
	source->name = frame->function == 9 ? NULL : text;
	return 0;
}

START_TEST(frames_are_named_and_more_are_added)
{
	struct incstack_profile *profile = made(), *named;
	struct incstack_frame_object base = object(NULL, 0, 0, BASE);
	struct incstack_frame_object f = object(&base, 9, 3, FILLED);
	struct incstack_trace t = {.weight = 1, .top = &f};
	struct incstack_tree tree = {.traces = &t, .count = 1, .objects = 2};
	struct incstack_profile_frame frame;
	int asked = 0;

	ck_assert_int_eq(
		incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, &tree, NULL, NULL), 0);
	ck_assert_int_eq(incstack_profile_name_frames(profile, name_letter, &asked, &named), 0);
	ck_assert_int_eq(asked, 2);
	frame = node_at(named, 1).frame;
	ck_assert_mem_eq(frame.name, "a", 1);
	frame = node_at(named, 2).frame;
	ck_assert_uint_eq(frame.name_length, 3);
	ck_assert_mem_eq(frame.name, "0x9", 3);
	ck_assert_int_eq(
		incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, &tree, NULL, NULL), 0);
	ck_assert_uint_eq(incstack_profile_nodes(profile), 3);
	ck_assert_uint_eq(node_at(profile, 2).weights[0], 2);
	ck_assert_uint_eq(node_at(named, 2).weights[0], 1);
	incstack_profile_destroy(named);
	incstack_profile_destroy(profile);
}
END_TEST

/* A stack that is sampled, popped to a random depth and grown again. */
enum { DEPTH = 60, TRACES = 3000, OBJECTS = DEPTH + TRACES * 12 };

static struct incstack_frame_object objects[OBJECTS];
static struct incstack_trace traces[TRACES];

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

/* Pairs of frames share an address, as inlined ones do; or the addresses have no order. */
static uintptr_t address_at(size_t depth, bool ordered, uint32_t random)
{
	return ordered ? (DEPTH - depth / 2) * 16 : random % 7;
}

static size_t generate(bool ordered)
{
	const struct incstack_frame_object *stack[DEPTH];
	size_t depth = 0, used = 0;
	uint32_t random = 20140101;

	for (size_t i = 0; i < TRACES; i++) {
		size_t change = depth ? next_random(&random) % 11 : 0;

		depth -= change < depth ? change : depth - 1 + (depth == 0);
		while (depth < 2 || (depth < DEPTH && change-- > 0)) {
			uint32_t function = next_random(&random) % 5;

			objects[used] = object(depth ? stack[depth - 1] : NULL,
					       depth ? function : 0, 0, depth ? FILLED : BASE);
			objects[used].address = address_at(depth, ordered, function * 3 + random);
			stack[depth++] = &objects[used++];
			ck_assert_uint_lt(used, OBJECTS);
		}
		traces[i] = (struct incstack_trace){.next = i + 1 < TRACES ? &traces[i + 1] : NULL,
						    .weight = next_random(&random),
						    .top = stack[depth - 1]};
	}
	return used;
}

static void fold_and_insert(bool ordered)
{
	struct incstack_profile *folded = made(), *inserted = made();
	struct incstack_tree tree = {
		.traces = traces, .count = TRACES, .objects = generate(ordered)};
	uint64_t *a, *b;

	ck_assert_int_eq(
		incstack_profile_add_tree(folded, INCSTACK_PROFILE_ROOT, &tree, NULL, NULL), 0);
	for (size_t i = 0; i < TRACES; i++) {
		const struct incstack_trace alone = {.weight = traces[i].weight,
						     .top = traces[i].top};
		const struct incstack_tree one = {.traces = &alone, .count = 1};

		ck_assert_int_eq(incstack_profile_add_tree(inserted, INCSTACK_PROFILE_ROOT, &one,
							   NULL, NULL),
				 0);
	}
	ck_assert_uint_gt(incstack_profile_nodes(folded), 1000);
	ck_assert_uint_eq(incstack_profile_nodes(folded), incstack_profile_nodes(inserted));
	a = calloc(incstack_profile_nodes(folded), sizeof(*a));
	b = calloc(incstack_profile_nodes(folded), sizeof(*b));
	ck_assert(a && b);
	ck_assert_int_eq(incstack_profile_totals(folded, 1, a), 0);
	ck_assert_int_eq(incstack_profile_totals(inserted, 1, b), 0);
	for (uint32_t n = 0; n < incstack_profile_nodes(folded); n++) {
		ck_assert_uint_eq(node_at(folded, n).parent, node_at(inserted, n).parent);
		ck_assert_uint_eq(a[n], b[n]);
	}
	free(a);
	free(b);
	incstack_profile_destroy(folded);
	incstack_profile_destroy(inserted);
}

START_TEST(folding_equals_inserting_each_trace)
{
	fold_and_insert(true);
}
END_TEST

START_TEST(folding_does_not_rely_on_the_order_of_addresses)
{
	fold_and_insert(false);
}
END_TEST

START_TEST(a_total_beyond_int64_is_refused_whole)
{
	struct incstack_profile *profile = made();
	const struct incstack_profile_frame frame = {.size = sizeof(frame), .function = 1};
	uint64_t weights[] = {1, INT64_MAX};
	uint32_t node;

	ck_assert_int_eq(incstack_profile_add_node(profile, INCSTACK_PROFILE_ROOT, &frame, &node),
			 0);
	ck_assert_int_eq(incstack_profile_add_weights(profile, node, weights), 0);
	weights[1] = 1;
	ck_assert_int_eq(incstack_profile_add_weights(profile, node, weights), INCSTACK_ERANGE);
	ck_assert_uint_eq(node_at(profile, 1).weights[0], 1);
	ck_assert_uint_eq(node_at(profile, 1).weights[1], INT64_MAX);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
	struct incstack_profile *profile = NULL;
	struct incstack_profile_kind unnamed = {NULL, "count"};
	struct incstack_profile_node node = {.size = sizeof(node)};
	uint64_t totals[1];

	ck_assert_int_eq(incstack_profile_create(NULL, 1, &profile), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_create(kinds, 0, &profile), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_create(kinds, 17, &profile), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_create(kinds, 1, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_create(&unnamed, 1, &profile), INCSTACK_EINVAL);
	profile = made();
	ck_assert_int_eq(
		incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, NULL, NULL, NULL),
		INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_totals(profile, 2, totals), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_node(profile, 1, &node), INCSTACK_EINVAL);
	node = node_at(profile, INCSTACK_PROFILE_ROOT);
	ck_assert_uint_eq(node.parent, INCSTACK_PROFILE_NONE);
	ck_assert_uint_eq(node.weights[0], 0);
	ck_assert_ptr_null(node.frame.name);
	incstack_profile_destroy(profile);
	incstack_profile_destroy(NULL);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("cct");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, shared_callers_become_one_node);
	tcase_add_test(tests, recursion_and_virtual_frames_are_kept);
	tcase_add_test(tests, frames_that_differ_in_one_thing_stay_apart);
	tcase_add_test(tests, truncated_traces_stay_apart);
	tcase_add_test(tests, frames_are_named_and_more_are_added);
	tcase_add_test(tests, folding_equals_inserting_each_trace);
	tcase_add_test(tests, folding_does_not_rely_on_the_order_of_addresses);
	tcase_add_test(tests, a_total_beyond_int64_is_refused_whole);
	tcase_add_test(tests, bad_arguments_are_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
