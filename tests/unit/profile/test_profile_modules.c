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

/* main, into which f is inlined, in a module. */
static struct incstack_profile *inlined(void)
{
	struct incstack_profile *profile = made();
	struct incstack_profile_frame frame = {.size = sizeof(frame),
					       .name = "main",
					       .name_length = 4,
					       .file = "m.c",
					       .line = 3,
					       .position = -1,
					       .module = "/bin/m",
					       .build_id =
						       "0123456789abcdef0123456789abcdef01234567",
					       .address = 0x1234};
	const uint64_t one[] = {1};
	uint32_t node;

	ck_assert_int_eq(incstack_profile_add_node(profile, 0, &frame, &node), 0);
	frame.name = "f";
	frame.name_length = 1;
	frame.line = 9;
	frame.flags = INCSTACK_OBJECT_VIRTUAL;
	ck_assert_int_eq(incstack_profile_add_node(profile, node, &frame, &node), 0);
	ck_assert_int_eq(incstack_profile_add_weights(profile, node, one), 0);
	return profile;
}

START_TEST(pprof_keeps_modules_addresses_lines_and_inlining)
{
	static const uint32_t keeps[] = {0, INCSTACK_KEEP_MAPPINGS};
	struct incstack_profile *profile = inlined();
	const struct bytes file = write_bytes(profile, INCSTACK_FORMAT_PPROF, 0);

	for (size_t i = 0; i < 2; i++) {
		FILE *stream = fmemopen(file.at, file.size, "r");
		struct incstack_profile *back = NULL;

		ck_assert_int_eq(
			incstack_profile_read(stream, INCSTACK_FORMAT_PPROF, keeps[i], &back, NULL),
			0);
		fclose(stream);
		for (uint32_t node = 1; node <= 2; node++) {
			const struct incstack_profile_frame frame = node_at(back, node).frame;

			expect(back, node, "/bin/m", "0123456789abcdef0123456789abcdef01234567",
			       0x1234);
			ck_assert_str_eq(frame.file, "m.c");
			ck_assert_int_eq(frame.line, node == 1 ? 3 : 9);
			ck_assert_uint_eq(frame.flags, node == 1 ? 0 : INCSTACK_OBJECT_VIRTUAL);
		}
		ck_assert_uint_eq(back->losses, 0);
		incstack_profile_destroy(back);
	}
	free(file.at);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(firefox_has_libraries)
{
	struct incstack_profile *profile = inlined();
	const struct bytes file = write_bytes(profile, INCSTACK_FORMAT_FIREFOX, 0);

	ck_assert_ptr_nonnull(strstr(file.at, "\"debugName\":\"m\",\"debugPath\":\"/bin/m\","));
	/* The first 16 bytes, with three numbers of the GUID turned round, and the age. */
	ck_assert_ptr_nonnull(
		strstr(file.at, "\"breakpadId\":\"67452301AB89EFCD0123456789ABCDEF0\""));
	ck_assert_ptr_nonnull(strstr(file.at, "\"resource\":[0,0]"));
	ck_assert_ptr_nonnull(strstr(file.at, "\"address\":[4660,4660]"));
	free(file.at);
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
	tcase_add_test(tests, pprof_keeps_modules_addresses_lines_and_inlining);
	tcase_add_test(tests, firefox_has_libraries);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
