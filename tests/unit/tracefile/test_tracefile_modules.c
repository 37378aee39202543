/* SPDX-License-Identifier: MIT
 *
 * Tests to which module an address belongs, with very many modules, and with several lists of
 * one epoch.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tracefile/read.h"
#include "run_suite.h"
#include "tracefile_batch.h"

enum { FILE_BYTES = 8 << 20, MODULE_BYTES = 0x1000 };
#define FIRST 0x10000000ull

static unsigned char *file;
static size_t file_bytes;

static void start_file(void)
{
	struct incstack__tracefile_header header;

	file = calloc(1, FILE_BYTES);
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(incstack__tracefile_header_init(&header, 7, 1, 0, 0, "cmd"), 0);
	memcpy(file, &header, sizeof(header));
	file_bytes = INCSTACK__TRACEFILE_START;
}

static void append(int64_t bytes)
{
	ck_assert_int_gt(bytes, 0);
	file_bytes += (size_t)bytes;
}

static uint64_t low_of(uint32_t module)
{
	return FIRST + 2ull * MODULE_BYTES * module;
}

/* Modules [first, end), each at a place of its own. */
static void append_modules(uint32_t epoch, uint32_t first, uint32_t end)
{
	struct incstack__tracefile_modules modules;
	char path[32];

	ck_assert_int_eq(incstack__tracefile_modules_begin(&modules, file + file_bytes,
							   FILE_BYTES - file_bytes, epoch),
			 0);
	for (uint32_t i = first; i < end; i++) {
		snprintf(path, sizeof(path), "/lib/%u", i);
		ck_assert_int_eq(incstack__tracefile_modules_add(&modules, path, low_of(i),
								 low_of(i),
								 low_of(i) + MODULE_BYTES, NULL),
				 0);
	}
	append(incstack__tracefile_modules_finish(&modules, 0));
}

/* An allocation, by code of that module. */
static void append_batch(uint32_t epoch, uint32_t module, uint64_t stamp)
{
	uint64_t words[256];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));
	const struct incstack_frame_object object = {.function = low_of(module) + 100,
						     .flags = INCSTACK_OBJECT_FILLED |
							      INCSTACK_OBJECT_BASE,
						     .position = -1};
	struct incstack_frame_object copy = object;
	struct incstack_trace trace = {.top = &copy};
	const struct incstack_tree tree = {&trace, 1, 1, 0};

	ck_assert_int_eq(incstack__tracefile_put_alloc(&log, stamp, 0x1000, 8, 0), 0);
	append(put_batch(file + file_bytes, FILE_BYTES - file_bytes, &log, 1, epoch, &tree));
}

/* The path of the module that the next allocation is of. */
static void check_next(struct incstack__tracefile_reader *reader, const char *path)
{
	const struct incstack__tracefile_module_info *info;
	struct incstack__tracefile_event event;
	uint64_t pc;
	int exact;

	ck_assert_int_eq(incstack__tracefile_next(reader, &event), 1);
	info = incstack__tracefile_code_module(reader, incstack__tracefile_code(event.chunk, 0),
					       &pc, &exact);
	ck_assert((info == NULL) == (path == NULL));
	if (path != NULL)
		ck_assert_str_eq(info->path, path);
}

static struct incstack__tracefile_reader *open_file(void)
{
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;

	ck_assert_int_eq(incstack__tracefile_open(file, file_bytes, &reader, &problem), 0);
	return reader;
}

START_TEST(very_many_modules)
{
	struct incstack__tracefile_reader *reader;

	start_file();
	append_modules(2, 0, 60000);
	append_batch(2, 3, 1);
	append_batch(2, 59999, 2);
	reader = open_file();
	check_next(reader, "/lib/3");
	check_next(reader, "/lib/59999");
	ck_assert_ptr_null(incstack__tracefile_reader_problem(reader).what);
	incstack__tracefile_close(reader);
	free(file);
}
END_TEST

START_TEST(too_many_modules_are_told)
{
	struct incstack__tracefile_reader *reader;

	start_file();
	append_modules(2, 0, INCSTACK__TRACEFILE_MODULES_MAX + 5);
	append_batch(2, 3, 1);
	append_batch(2, INCSTACK__TRACEFILE_MODULES_MAX + 1, 2);
	reader = open_file();
	check_next(reader, "/lib/3");
	check_next(reader, NULL);
	ck_assert_ptr_nonnull(incstack__tracefile_reader_problem(reader).what);
	ck_assert_uint_eq(incstack__tracefile_reader_totals(reader)->damaged, 1);
	incstack__tracefile_close(reader);
	free(file);
}
END_TEST

/* Modules come in an epoch: its last list counts, also for batches before it. */
START_TEST(the_last_list_counts)
{
	struct incstack__tracefile_reader *reader;

	start_file();
	append_modules(2, 0, 4);
	append_batch(2, 5, 1);
	append_batch(3, 3, 2);
	append_modules(2, 0, 6);
	append_modules(3, 0, 3);
	append_modules(4, 0, 3);
	reader = open_file();
	check_next(reader, "/lib/5");
	check_next(reader, NULL);
	incstack__tracefile_close(reader);
	free(file);
}
END_TEST

/* Builds of one library at one place are different modules. */
START_TEST(another_build_is_another_module)
{
	const struct incstack__identity builds[] = {{INCSTACK__IDENTITY_BUILD_ID, 2, {1, 2}},
						    {INCSTACK__IDENTITY_BUILD_ID, 2, {1, 3}}};
	const struct incstack__tracefile_module_info *info;
	struct incstack__tracefile_modules modules;
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_event event;
	uint64_t pc;
	int exact;

	start_file();
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_int_eq(incstack__tracefile_modules_begin(&modules, file + file_bytes,
								   FILE_BYTES - file_bytes,
								   2 + 2 * i),
				 0);
		ck_assert_int_eq(incstack__tracefile_modules_add(
					 &modules, "/lib/0", low_of(0), low_of(0),
					 low_of(0) + MODULE_BYTES, i < 2 ? &builds[i] : NULL),
				 0);
		append(incstack__tracefile_modules_finish(&modules, 0));
		append_batch(2 + 2 * i, 0, i + 1);
	}
	reader = open_file();
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_int_eq(incstack__tracefile_next(reader, &event), 1);
		info = incstack__tracefile_code_module(
			reader, incstack__tracefile_code(event.chunk, 0), &pc, &exact);
		ck_assert_ptr_nonnull(info);
		ck_assert_str_eq(info->path, "/lib/0");
		ck_assert_int_eq(info->identity.kind,
				 i < 2 ? INCSTACK__IDENTITY_BUILD_ID : INCSTACK__IDENTITY_NONE);
		ck_assert(i == 2 || incstack__identity_same(&info->identity, &builds[i]));
	}
	incstack__tracefile_close(reader);
	free(file);
}
END_TEST

/* An identity that is too long, or of an unknown kind, or longer than the block. */
START_TEST(a_malformed_identity_is_told)
{
	static const struct incstack__tracefile_module wrong[] = {
		{.identity = INCSTACK__IDENTITY_BUILD_ID, .identity_length = 65},
		{.identity = INCSTACK__IDENTITY_KINDS, .identity_length = 8},
		{.identity = INCSTACK__IDENTITY_BUILD_ID, .identity_length = 20},
	};
	struct incstack__identity identity = {INCSTACK__IDENTITY_BUILD_ID, 19, {0}};

	for (unsigned i = 0; i < 3; i++) {
		struct incstack__tracefile_modules modules;
		struct incstack__tracefile_module *module;
		struct incstack__tracefile_reader *reader;

		start_file();
		ck_assert_int_eq(incstack__tracefile_modules_begin(&modules, file + file_bytes,
								   FILE_BYTES - file_bytes, 2),
				 0);
		module = (void *)(modules.data + modules.used);
		ck_assert_int_eq(
			incstack__tracefile_modules_add(&modules, "/lib/0", 1, 1, 2, &identity), 0);
		module->identity = wrong[i].identity;
		module->identity_length = wrong[i].identity_length;
		append(incstack__tracefile_modules_finish(&modules, 0));
		reader = open_file();
		ck_assert_str_eq(incstack__tracefile_reader_problem(reader).what,
				 "the identity of a module is malformed");
		incstack__tracefile_close(reader);
		free(file);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tracefile_modules");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, very_many_modules);
	tcase_add_test(tests, too_many_modules_are_told);
	tcase_add_test(tests, the_last_list_counts);
	tcase_add_test(tests, another_build_is_another_module);
	tcase_add_test(tests, a_malformed_identity_is_told);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
