/* SPDX-License-Identifier: MIT
 *
 * Tests that frames have modules, build-ids and addresses, and which of them tell frames apart.
 */
#include <stdlib.h>
#include <string.h>

#include "profile/cct.h"
#include "profile/reduce.h"
#include "profile_files.h"
#include "profile_nodes.h"
#include "run_suite.h"

static const struct incstack_profile_kind kinds[] = {{"samples", "count"}};

static struct incstack_profile *made(void)
{
	struct incstack_profile *profile = NULL;

	ck_assert_int_eq(incstack_profile_create(kinds, 1, &profile), 0);
	return profile;
}

static uint32_t add(struct incstack_profile *profile, const char *module, const char *build_id,
		    uint64_t address)
{
	const struct incstack_profile_frame frame = {.size = sizeof(frame),
						     .name = "f",
						     .name_length = 1,
						     .position = -1,
						     .module = module,
						     .build_id = build_id,
						     .address = address};
	const uint64_t one[] = {1};
	uint32_t node;

	ck_assert_int_eq(incstack_profile_add_node(profile, INCSTACK_PROFILE_ROOT, &frame, &node),
			 0);
	ck_assert_int_eq(incstack_profile_add_weights(profile, node, one), 0);
	return node;
}

static void expect(const struct incstack_profile *profile, uint32_t node, const char *module,
		   const char *build_id, uint64_t address)
{
	const struct incstack_profile_frame frame = node_at(profile, node).frame;

	ck_assert_pstr_eq(frame.module, module);
	ck_assert_pstr_eq(frame.build_id, build_id);
	ck_assert_uint_eq(frame.address, address);
}

START_TEST(modules_tell_frames_apart_and_addresses_do_not)
{
	struct incstack_profile *profile = made();

	ck_assert_uint_eq(add(profile, "/lib/a.so", "ab", 0), 1);
	ck_assert_uint_eq(add(profile, "/lib/a.so", "ab", 0x10), 1);
	ck_assert_uint_eq(add(profile, "/lib/a.so", "ab", 0x20), 1);
	ck_assert_uint_eq(add(profile, "/lib/a.so", "cd", 0x20), 2);
	ck_assert_uint_eq(add(profile, "/lib/b.so", "ab", 0x20), 3);
	ck_assert_uint_eq(add(profile, "/lib/b.so", NULL, 0x20), 4);
	ck_assert_uint_eq(add(profile, NULL, NULL, 0x20), 5);
	ck_assert_uint_eq(add(profile, "", "", 0), 5); /* empty means unknown */
	expect(profile, 1, "/lib/a.so", "ab", 0x10);   /* the first one that is known */
	expect(profile, 2, "/lib/a.so", "cd", 0x20);
	expect(profile, 4, "/lib/b.so", NULL, 0x20);
	expect(profile, 5, NULL, NULL, 0x20);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(strings_must_be_utf8)
{
	struct incstack_profile *profile = made();
	struct incstack_profile_frame frame = {.size = sizeof(frame), .module = "\xff"};
	uint32_t node;

	ck_assert_int_eq(incstack_profile_add_node(profile, 0, &frame, &node), INCSTACK_EFORMAT);
	frame.module = NULL;
	frame.build_id = "\xff";
	ck_assert_int_eq(incstack_profile_add_node(profile, 0, &frame, &node), INCSTACK_EFORMAT);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(merge_keeps_modules)
{
	struct incstack_profile *a = made(), *b = made(), *folded = NULL;

	(void)add(a, "/lib/a.so", "ab", 0);
	(void)add(b, "/lib/b.so", NULL, 0x30);
	(void)add(b, "/lib/a.so", "ab", 0x20);
	ck_assert_int_eq(incstack_profile_merge(a, b), 0);
	ck_assert_uint_eq(incstack_profile_nodes(a), 3);
	expect(a, 1, "/lib/a.so", "ab", 0x20);
	expect(a, 2, "/lib/b.so", NULL, 0x30);
	ck_assert_int_eq(incstack__profile_fold_recursion(a, &folded), 0);
	expect(folded, 2, "/lib/b.so", NULL, 0x30);
	ck_assert_int_eq(incstack__profile_prune(folded, 1), 0);
	incstack_profile_destroy(folded);
	incstack_profile_destroy(a);
	incstack_profile_destroy(b);
}
END_TEST

static int find(void *context, const struct incstack_profile_frame *frame,
		struct incstack_profile_source *source)
{
	source->name = "g";
	if (frame->address == 0x20) {
		source->module = context;
		source->build_id = "cd";
		source->address = 0x40;
	}
	return 0;
}

START_TEST(naming_gives_or_keeps_modules)
{
	struct incstack_profile *profile = made(), *named = NULL;
	char module[] = "/lib/c.so";

	(void)add(profile, "/lib/a.so", "ab", 0x10);
	(void)add(profile, "/lib/b.so", "ab", 0x20);
	ck_assert_int_eq(incstack_profile_name_frames(profile, find, module, &named), 0);
	memset(module, 'x', sizeof(module) - 1);
	expect(named, 1, "/lib/a.so", "ab", 0x10);
	expect(named, 2, "/lib/c.so", "cd", 0x40);
	incstack_profile_destroy(named);
	named = NULL;
	ck_assert_int_eq(incstack_profile_name_frames(profile, find, "\xff", &named),
			 INCSTACK_EFORMAT);
	incstack_profile_destroy(profile);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("modules");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, modules_tell_frames_apart_and_addresses_do_not);
	tcase_add_test(tests, strings_must_be_utf8);
	tcase_add_test(tests, merge_keeps_modules);
	tcase_add_test(tests, naming_gives_or_keeps_modules);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
