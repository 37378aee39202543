/* SPDX-License-Identifier: MIT
 *
 * Tests the lists of the code of another process: how often its files are opened, how many mappings
 * are kept, and what objects are taken that no loader would take.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/attach/process/ask.h"
#include "tool/attach/process/copy.h"
#include "tool/attach/process/space.h"
#include "run_suite.h"

enum { PAGE = 4096, TEXT = PAGE, INODE = 5 };
#define START UINT64_C(0x7f0000000000)

static struct {
	unsigned opened;
	FILE *file; /* the one that is mapped; null: none can be opened */
} files;

int tool_attach_ask_file(const struct tool_attach_mapping *mapping, char **path)
{
	files.opened++;
	if (path != NULL)
		*path = strdup(mapping->path);
	return files.file != NULL ? dup(fileno(files.file)) : -1;
}

int tool_attach_ask_maps(void)
{
	return -1;
}

int tool_attach_ask_memory(void)
{
	return -1;
}

/* An object of two segments: its headers, and its code. */
struct object {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
};

static struct object usual(void)
{
	struct object object = {
		.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
			   .e_phoff = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 2},
		.segments =
			{{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = PAGE, .p_memsz = PAGE},
			 {.p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_offset = TEXT,
			  .p_vaddr = TEXT,
			  .p_filesz = PAGE,
			  .p_memsz = PAGE}},
	};

	return object;
}

static void begin(const struct object *object, size_t bytes)
{
	static const char zeros[4 * PAGE];

	files.opened = 0;
	files.file = tmpfile();
	ck_assert_ptr_nonnull(files.file);
	fwrite(object, 1, sizeof(*object), files.file);
	fwrite(zeros, 1, bytes - sizeof(*object), files.file);
	ck_assert_int_eq(fflush(files.file), 0);
}

static void end(struct tool_attach_space *space)
{
	tool_attach_space_free(space);
	if (files.file != NULL)
		fclose(files.file);
	files.file = NULL;
}

static struct tool_attach_mapping code_at(uint64_t low)
{
	return (struct tool_attach_mapping){
		.low = low,
		.high = low + PAGE,
		.offset = TEXT,
		.device = 1,
		.inode = INODE,
		.is_code = true,
		.path = "/a/library",
	};
}

static size_t count_of(const struct tool_attach_space *space)
{
	size_t count;

	tool_attach_space_modules(space, &count);
	return count;
}

/* Two pages: headers and code. */
static void add_many(struct tool_attach_space *space, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct tool_attach_mapping mapping = code_at(START + 2 * PAGE * i + PAGE);

		tool_attach_space_map(space, &mapping);
	}
}

START_TEST(a_file_that_is_mapped_often_is_opened_once)
{
	struct tool_attach_space *space = tool_attach_space_new();
	const struct object object = usual();

	begin(&object, 2 * PAGE);
	add_many(space, 1000);
	ck_assert_uint_eq(count_of(space), 1000);
	ck_assert_uint_eq(files.opened, 1);
	ck_assert_uint_eq(tool_attach_space_left_out(space), 0);
	add_many(space, 1000); /* nothing new */
	ck_assert_uint_eq(count_of(space), 1000);
	end(space);
}
END_TEST

START_TEST(modules_are_limited_and_counted)
{
	struct tool_attach_space *space = tool_attach_space_new();
	const struct object object = usual();
	struct incstack_rule rule;
	size_t count;

	begin(&object, 2 * PAGE);
	add_many(space, 32000);
	count = count_of(space);
	ck_assert_uint_le(count, 4096);
	ck_assert_uint_eq(tool_attach_space_left_out(space), 32000 - count);
	/* The code that was left out is still code. */
	ck_assert_int_eq(tool_attach_space_rule(space, START + 2 * PAGE * 5000 + PAGE, 1, &rule),
			 TOOL_ATTACH_RULE);
	ck_assert_uint_ne(rule.flags & INCSTACK_RULE_BY_POINTER, 0);
	ck_assert_int_eq(tool_attach_space_rule(space, START - PAGE, 1, &rule),
			 TOOL_ATTACH_NO_CODE);
	end(space);
}
END_TEST

/* Ranges of code without a file: in any order, with gaps, and then without. */
START_TEST(other_code_is_found)
{
	enum { RANGES = 3000, STEP = 7 };
	struct tool_attach_space *space = tool_attach_space_new();
	struct incstack_rule rule;

	for (unsigned i = 0; i < RANGES; i++) {
		struct tool_attach_mapping mapping =
			code_at(START + 2 * PAGE * (uint64_t)(i * STEP % RANGES));

		mapping.inode = 0;
		mapping.path = "";
		tool_attach_space_map(space, &mapping);
	}
	for (unsigned i = 0; i < RANGES; i++) {
		const uint64_t at = START + 2 * PAGE * (uint64_t)i;

		ck_assert_int_eq(tool_attach_space_rule(space, at, 1, &rule), TOOL_ATTACH_RULE);
		ck_assert_uint_ne(rule.flags & INCSTACK_RULE_BY_POINTER, 0);
		ck_assert_int_eq(tool_attach_space_rule(space, at + PAGE, 1, &rule),
				 TOOL_ATTACH_NO_CODE);
	}
	for (unsigned i = 0; i < RANGES; i++) {
		struct tool_attach_mapping mapping = code_at(START + 2 * PAGE * (uint64_t)i + PAGE);

		mapping.inode = 0;
		mapping.path = "";
		tool_attach_space_map(space, &mapping);
	}
	for (unsigned i = 0; i < 2 * RANGES; i++)
		ck_assert_int_eq(
			tool_attach_space_rule(space, START + PAGE * (uint64_t)i, 1, &rule),
			TOOL_ATTACH_RULE);
	ck_assert_uint_eq(tool_attach_space_left_out(space), 0);
	end(space);
}
END_TEST

static const struct tool_attach_module *module_of(struct tool_attach_space *space,
						  const struct object *object, size_t bytes)
{
	const struct tool_attach_mapping mapping = code_at(START + TEXT);
	const struct tool_attach_module *module;

	begin(object, bytes);
	tool_attach_space_map(space, &mapping);
	module = tool_attach_space_module(space, START + TEXT);
	ck_assert_ptr_nonnull(module);
	return module;
}

/* Changes of the usual object, none of which may be copied. */
static const struct {
	uint64_t vaddr, offset, filesz, memsz;
} wrong[] = {
	{-UINT64_C(0x209000), PAGE, 2 * PAGE, 0x209800}, /* wraps around */
	{-UINT64_C(0x1000), PAGE, PAGE, PAGE},           /* ends at 0 */
	{UINT64_MAX - 10, PAGE, 5, 5},                   /* wraps around by its page */
	{TEXT, PAGE, 2 * PAGE, PAGE},                    /* more in the file than in memory */
	{TEXT, UINT64_MAX - PAGE + 1, PAGE, PAGE},
	{TEXT, INT64_MAX, PAGE, PAGE},
	{TEXT, PAGE, UINT64_MAX, UINT64_MAX},
	{TEXT, PAGE, UINT64_C(1) << 33, UINT64_C(1) << 33}, /* more than is copied */
	{UINT64_C(1) << 40, PAGE, PAGE, PAGE},              /* too far away */
};

START_TEST(no_impossible_object_is_copied)
{
	struct tool_attach_space *space = tool_attach_space_new();
	struct object object = usual();

	object.segments[1].p_vaddr = wrong[_i].vaddr;
	object.segments[1].p_offset = wrong[_i].offset;
	object.segments[1].p_filesz = wrong[_i].filesz;
	object.segments[1].p_memsz = wrong[_i].memsz;
	ck_assert_ptr_null(module_of(space, &object, 2 * PAGE)->copy);
	end(space);
}
END_TEST

START_TEST(a_file_that_is_too_short_gives_nothing)
{
	struct tool_attach_space *space = tool_attach_space_new();
	const struct object object = usual();
	struct tool_attach_copy *copy = module_of(space, &object, 2 * PAGE)->copy;

	ck_assert_ptr_nonnull(copy);
	ck_assert_uint_eq(copy->size, 2 * PAGE);
	ck_assert(!tool_attach_copy_get(copy, 2 * PAGE, 1));
	ck_assert(!tool_attach_copy_get(copy, UINT64_MAX, 2));
	ck_assert(!tool_attach_copy_get(copy, 1, UINT64_MAX));
	ck_assert(tool_attach_copy_get(copy, 2 * PAGE, 0));
	ck_assert_int_eq(ftruncate(fileno(files.file), PAGE + 1), 0);
	ck_assert(!tool_attach_copy_get(copy, 0, 1));
	ck_assert(!tool_attach_copy_get(copy, 0, 1)); /* for ever */
	end(space);
}
END_TEST

START_TEST(a_file_that_cannot_be_opened_gives_a_module)
{
	struct tool_attach_space *space = tool_attach_space_new();

	add_many(space, 3);
	ck_assert_uint_eq(count_of(space), 3);
	ck_assert_ptr_null(tool_attach_space_module(space, START + PAGE)->copy);
	end(space);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("attach space");
	TCase *all = tcase_create("all");

	tcase_add_test(all, a_file_that_is_mapped_often_is_opened_once);
	tcase_add_test(all, modules_are_limited_and_counted);
	tcase_add_test(all, other_code_is_found);
	tcase_add_loop_test(all, no_impossible_object_is_copied, 0,
			    (int)(sizeof(wrong) / sizeof(wrong[0])));
	tcase_add_test(all, a_file_that_is_too_short_gives_nothing);
	tcase_add_test(all, a_file_that_cannot_be_opened_gives_a_module);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
