/* SPDX-License-Identifier: MIT
 *
 * Tests the recorder's lists of modules: which entries are equal, lists that need more memory or
 * get none, and what the dynamic linker is asked for.
 */
#include "recorder/code/modules.c"

#include <stdio.h>
#include <sys/mman.h>

#include "run_suite.h"

/* ---- in place of the rest of the recorder ----------------------------------------------- */

static size_t mapped; /* bytes */
static int no_memory;
static unsigned compared, written;
static struct incstack__record_counts seen;

void *incstack__record_map(size_t bytes)
{
	void *memory = no_memory ? MAP_FAILED
				 : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	mapped += bytes;
	return memory;
}

void *incstack__record_remap(void *memory, size_t bytes, size_t more)
{
	void *moved = no_memory ? MAP_FAILED : mremap(memory, bytes, more, MREMAP_MAYMOVE);

	if (moved == MAP_FAILED)
		return NULL;
	mapped += more - bytes;
	return moved;
}

void incstack__record_unmap(void *memory, size_t bytes)
{
	if (memory == NULL)
		return;
	ck_assert_int_eq(munmap(memory, bytes), 0);
	mapped -= bytes;
}

int incstack__record_write(const void *data, size_t bytes)
{
	struct incstack__tracefile_block block;

	memcpy(&block, data, sizeof(block));
	ck_assert_uint_eq(block.type, INCSTACK__TRACEFILE_MODULES);
	ck_assert_uint_ge(bytes, HEADS);
	written++;
	return 0;
}

void incstack__record_cut_deleted(char *path)
{
	(void)path;
}

bool incstack__record_path(uint64_t address, char *path, size_t size)
{
	(void)address;
	(void)path;
	(void)size;
	return 0;
}

void incstack__record_identity(const struct dl_phdr_info *info, struct incstack__identity *identity)
{
	(void)info;
	*identity = (struct incstack__identity){0};
}

void incstack__record_linker_compare(struct incstack__record_counts counts)
{
	compared++;
	seen = counts;
}

/* ---- entries ------------------------------------------------------------------------------ */

enum { LOW = 0x1000, HIGH = 0x3000, BIAS = 0x800 };

static void add(struct incstack__record_list *list, const char *path, uint64_t bias, uint64_t low)
{
	ck_assert_int_eq(make_room(list, sizeof(struct incstack__tracefile_module) + strlen(path)),
			 0);
	ck_assert_int_eq(incstack__tracefile_modules_add(&list->block, path, bias, low, HIGH, NULL),
			 0);
}

/* Everything that is kept about a module is compared, and nothing beyond it. */
START_TEST(same_is_all_of_it)
{
	struct incstack__record_list list = {.counts = {0, 0}};
	struct incstack__record_entry first, entry;
	size_t at = 0, i = 0;

	add(&list, "/lib/first.so", BIAS, LOW);
	add(&list, "/lib/first.so", BIAS, LOW);
	add(&list, "/lib/other.so", BIAS, LOW);
	add(&list, "/lib/first.so", 2 * BIAS, LOW);
	add(&list, "/lib/first.so", BIAS, LOW + 1);
	add(&list, "/lib/first.so.1", BIAS, LOW);
	add(&list, "/lib/first", BIAS, LOW);
	ck_assert_int_eq(incstack__record_list_next(&list, &at, &first), 1);
	ck_assert_int_eq(incstack__record_list_same(&first, &first), 1);
	for (; incstack__record_list_next(&list, &at, &entry); i++) {
		ck_assert_int_eq(incstack__record_list_same(&first, &entry), i == 0);
		ck_assert_int_eq(incstack__record_list_same(&entry, &first), i == 0);
	}
	ck_assert_uint_eq(i, 6);
	incstack__record_list_free(&list);
	ck_assert_uint_eq(mapped, 0);
}
END_TEST

enum { MANY = 5000 }; /* of which the first piece of memory holds some */

static void add_numbered(struct incstack__record_list *list, unsigned number)
{
	char path[32];

	snprintf(path, sizeof(path), "/lib/number-%u.so", number);
	add(list, path, BIAS, LOW + number % 100);
}

static void check_copies(const struct incstack__record_list *list,
			 const struct incstack__record_list *of, unsigned count)
{
	struct incstack__record_entry one, other;
	size_t at = 0, at_of = 0;

	ck_assert_uint_eq(list->block.count, count);
	for (unsigned i = 0; i < count; i++) {
		ck_assert_int_eq(incstack__record_list_next(list, &at, &one), 1);
		ck_assert_int_eq(incstack__record_list_next(of, &at_of, &other), 1);
		ck_assert_int_eq(incstack__record_list_same(&one, &other), 1);
	}
	ck_assert_int_eq(incstack__record_list_next(list, &at, &one), 0);
}

START_TEST(lists_grow)
{
	struct incstack__record_list list = {.counts = {0, 0}}, copy = {.counts = {0, 0}};
	struct incstack__record_entry entry;
	size_t at = 0;

	for (unsigned i = 0; i < MANY; i++)
		add_numbered(&list, i);
	while (incstack__record_list_next(&list, &at, &entry))
		ck_assert_int_eq(incstack__record_list_add(&copy, &entry), 0);
	ck_assert_uint_gt(copy.block.size, 2 * FIRST_BYTES);
	check_copies(&copy, &list, MANY);
	incstack__record_list_write(&copy, 7);
	ck_assert_uint_eq(written, 1);
	incstack__record_list_free(&copy);
	ck_assert_uint_eq(copy.block.count, 0);
	incstack__record_list_free(&list);
	ck_assert_uint_eq(mapped, 0);
}
END_TEST

/* The earlier list stays. */
START_TEST(no_memory_for_more)
{
	struct incstack__record_list list = {.counts = {0, 0}}, copy = {.counts = {0, 0}};
	struct incstack__record_entry entry;
	unsigned added = 0;
	size_t at = 0;

	for (unsigned i = 0; i < MANY; i++)
		add_numbered(&list, i);
	ck_assert_int_eq(incstack__record_list_next(&list, &at, &entry), 1);
	no_memory = 1;
	ck_assert_int_eq(incstack__record_list_add(&copy, &entry), INCSTACK_ENOMEM);
	ck_assert_ptr_null(copy.block.data);
	no_memory = 0;
	ck_assert_int_eq(incstack__record_list_add(&copy, &entry), 0);
	no_memory = 1;
	for (added = 1; incstack__record_list_next(&list, &at, &entry); added++)
		if (incstack__record_list_add(&copy, &entry) != 0)
			break;
	ck_assert_uint_lt(added, MANY);
	ck_assert_uint_eq(copy.block.size, FIRST_BYTES);
	ck_assert_uint_le(copy.block.used, FIRST_BYTES);
	check_copies(&copy, &list, added);
	incstack__record_list_free(&copy);
	incstack__record_list_free(&list);
	ck_assert_uint_eq(mapped, 0);
}
END_TEST

/* ---- the dynamic linker -------------------------------------------------------------------- */

START_TEST(what_is_loaded)
{
	const struct incstack__record_counts none = {0, 0};
	struct incstack__record_list list = {.counts = {0, 0}}, again = {.counts = {0, 0}};
	struct incstack__record_entry entry;
	const uint64_t here = (uintptr_t)no_memory_for_more;
	unsigned found = 0;
	char self[4096];

	self[readlink("/proc/self/exe", self, sizeof(self) - 1)] = '\0';
	ck_assert_int_eq(incstack__record_list_collect(&list, none), 1);
	ck_assert_uint_eq(compared, 1); /* once in all its calls */
	ck_assert_uint_eq(list.counts.adds, seen.adds);
	ck_assert_uint_eq(list.counts.subs, seen.subs);
	for (size_t at = 0; incstack__record_list_next(&list, &at, &entry);) {
		ck_assert_uint_lt(entry.module.low, entry.module.high);
		if (here < entry.module.low || here >= entry.module.high)
			continue;
		found++;
		ck_assert_uint_eq(entry.module.path_length, strlen(self));
		ck_assert_int_eq(memcmp(entry.at + sizeof(entry.module), self, strlen(self)), 0);
	}
	ck_assert_uint_eq(found, 1);
	ck_assert_uint_gt(list.block.count, 1);
	ck_assert_int_eq(incstack__record_list_collect(&again, list.counts), 0);
	ck_assert_ptr_null(again.block.data);
	for (unsigned i = 0; again.block.size == 0 || again.block.size - again.block.used > 200;
	     i++)
		add_numbered(&again, i);
	no_memory = 1; /* first for more memory, then for any */
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(incstack__record_list_collect(&again, none), -1);
		ck_assert_ptr_null(again.block.data);
	}
	incstack__record_list_free(&list);
	ck_assert_uint_eq(mapped, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("modules of the recorder");
	TCase *lists = tcase_create("lists");

	tcase_add_test(lists, same_is_all_of_it);
	tcase_add_test(lists, lists_grow);
	tcase_add_test(lists, no_memory_for_more);
	tcase_add_test(lists, what_is_loaded);
	suite_add_tcase(suite, lists);
	return run_suite(suite);
}
