/* SPDX-License-Identifier: MIT
 *
 * Rules from a copy of an object: they are those of the object itself, and a damaged copy is never
 * read beyond its bounds, where there are pages that cannot be read.
 */
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "native/image.h"
#include "native/native.h"
#include "run_suite.h"

enum { PAGE = 4096, ROUNDS = 100, LOOKS = 200 };

struct object {
	uintptr_t low, high; /* of the segments that are readable and not writable */
	uintptr_t header, text, text_end;
};

/* Finds libc, which has every kind of rule. */
static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	struct object *object = context;

	(void)size;
	if (strstr(info->dlpi_name, "libc.so") == NULL)
		return 0;
	object->low = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t low = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_GNU_EH_FRAME)
			object->header = low;
		if (p->p_type != PT_LOAD || p->p_flags & PF_W)
			continue;
		if (low < object->low)
			object->low = low;
		if (low + p->p_memsz > object->high)
			object->high = low + p->p_memsz;
		if (p->p_flags & PF_X) {
			object->text = low;
			object->text_end = low + p->p_memsz;
		}
	}
	return 1;
}

static struct object libc_object(void)
{
	struct object object = {0};

	ck_assert_int_eq(dl_iterate_phdr(look, &object), 1);
	ck_assert(object.header != 0 && object.text != 0);
	return object;
}

/* Copies the object. Nothing around the copy can be read. */
static struct incstack__native_image copy_of(const struct object *object)
{
	const size_t bytes = object->high - object->low;
	const size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
	unsigned char *memory = mmap(NULL, whole + 2 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uintptr_t copy = (uintptr_t)memory + PAGE;

	ck_assert(memory != MAP_FAILED);
	memcpy((void *)copy, (const void *)object->low, bytes);
	ck_assert_int_eq(mprotect(memory, PAGE, PROT_NONE), 0);
	ck_assert_int_eq(mprotect(memory + PAGE + whole, PAGE, PROT_NONE), 0);
	return (struct incstack__native_image){.bytes = {.low = copy, .high = copy + whole},
					       .header = object->header - object->low + copy};
}

START_TEST(the_rules_are_those_of_the_object)
{
	const struct object object = libc_object();
	const struct incstack__native_image image = copy_of(&object);
	unsigned found = 0;

	for (uintptr_t at = object.text; at < object.text_end; at += 101) {
		const uintptr_t copied = at - object.low + image.bytes.low;
		struct incstack_rule want = {0};
		struct incstack_rule got = {0};
		const bool has = incstack__native_cfi_rule(at, &want);

		ck_assert_int_eq(incstack__native_image_rule(&image, copied, &got), has);
		ck_assert(!has || memcmp(&want, &got, sizeof(got)) == 0);
		ck_assert_int_eq(incstack__native_image_follows_call(&image, copied),
				 at - object.low >= 7 && incstack__native_follows_call(at));
		found += has;
	}
	ck_assert_uint_gt(found, 1000);
}
END_TEST

START_TEST(an_image_without_an_index_has_no_rules)
{
	const struct object object = libc_object();
	struct incstack__native_image image = copy_of(&object);
	const uintptr_t at = object.text - object.low + image.bytes.low + 100;
	const uintptr_t header = image.header;
	struct incstack_rule rule;

	image.header = 0;
	ck_assert(!incstack__native_image_rule(&image, at, &rule));
	image.header = image.bytes.high - 4;
	ck_assert(!incstack__native_image_rule(&image, at, &rule));
	image.header = image.bytes.high + 4;
	ck_assert(!incstack__native_image_rule(&image, at, &rule));
	image.header = header;
	memset((void *)(header + 8), 0xff, 4); /* more entries than can be there */
	ck_assert(!incstack__native_image_rule(&image, at, &rule));
}
END_TEST

START_TEST(calls_are_looked_for_inside_only)
{
	const struct object object = libc_object();
	const struct incstack__native_image image = copy_of(&object);

	for (uintptr_t at = image.bytes.low - 20; at < image.bytes.low + 7; at++)
		ck_assert(!incstack__native_image_follows_call(&image, at));
	ck_assert(!incstack__native_image_follows_call(&image, image.bytes.high + 1));
	(void)incstack__native_image_follows_call(&image, image.bytes.high);
	ck_assert(!incstack__native_image_follows_call(&image, 0));
}
END_TEST

/* Damages some words of the tables, which makes lengths and distances wrong, and looks up rules. */
static void damage(const struct object *object, const struct incstack__native_image *image)
{
	const size_t table = image->bytes.high - image->header;
	const size_t text = object->text_end - object->text;

	for (int i = 0; i < 2000; i++) {
		const uint32_t word = (uint32_t)random() << (random() % 2 * 8);

		memcpy((void *)(image->header + 12 + (size_t)random() % (table - 16)), &word,
		       sizeof(word));
	}
	for (int i = 0; i < LOOKS; i++) {
		const uintptr_t at = object->text - object->low + (size_t)random() % text;
		struct incstack_rule rule;

		(void)incstack__native_image_rule(image, image->bytes.low + at, &rule);
	}
}

START_TEST(a_damaged_image_is_not_left)
{
	const struct object object = libc_object();
	const struct incstack__native_image image = copy_of(&object);

	srandom(1);
	for (int i = 0; i < ROUNDS; i++) {
		damage(&object, &image);
		if (i % 10 == 9)
			memcpy((void *)image.header, (const void *)object.header,
			       object.high - object.header);
	}
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("image");
	Suite *suite = suite_create("image");

	tcase_add_test(tests, the_rules_are_those_of_the_object);
	tcase_add_test(tests, an_image_without_an_index_has_no_rules);
	tcase_add_test(tests, calls_are_looked_for_inside_only);
	tcase_add_test(tests, a_damaged_image_is_not_left);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
