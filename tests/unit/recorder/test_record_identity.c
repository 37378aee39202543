/* SPDX-License-Identifier: MIT
 *
 * Tests that the recorder reads which build a module is only from memory that can be read: a program may
 * unmap or protect a part of a module.
 */
#include <check.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "recorder/code/identity.c"

#include "run_suite.h"

enum { PAGES = 8, BYTES = PAGES * 4096 };

static unsigned char *memory;
static Elf64_Phdr segments[2];
static struct incstack__identity identity;

static void make_module(void)
{
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	memset(memory, 7, BYTES);
	memset(segments, 0, sizeof(segments));
	segments[0] = (Elf64_Phdr){.p_type = PT_LOAD,
				   .p_flags = PF_R | PF_X,
				   .p_offset = 4096,
				   .p_filesz = BYTES,
				   .p_memsz = BYTES};
}

static void identify(unsigned count)
{
	const struct dl_phdr_info info = {.dlpi_addr = (uintptr_t)memory,
					  .dlpi_phdr = segments,
					  .dlpi_phnum = (uint16_t)count};

	incstack__record_identity(&info, &identity);
}

START_TEST(whole)
{
	identify(1);
	ck_assert_int_eq(identity.kind, INCSTACK__IDENTITY_CONTENT);
}
END_TEST

START_TEST(page_is_protected)
{
	ck_assert_int_eq(mprotect(memory + (size_t)_i * 4096, 4096, PROT_NONE), 0);
	identify(1);
	ck_assert_int_eq(identity.kind, INCSTACK__IDENTITY_NONE);
}
END_TEST

START_TEST(page_is_unmapped)
{
	ck_assert_int_eq(munmap(memory + (size_t)_i * 4096, 4096), 0);
	identify(1);
	ck_assert_int_eq(identity.kind, INCSTACK__IDENTITY_NONE);
}
END_TEST

/* There is no build-id then, and the checksum cannot be had either. */
START_TEST(notes_are_unmapped)
{
	segments[1] =
		(Elf64_Phdr){.p_type = PT_NOTE, .p_vaddr = 4096, .p_filesz = 64, .p_align = 4};
	ck_assert_int_eq(munmap(memory + 4096, 4096), 0);
	identify(2);
	ck_assert_int_eq(identity.kind, INCSTACK__IDENTITY_NONE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("identity of a module in memory");
	TCase *reading = tcase_create("reading");

	tcase_add_checked_fixture(reading, make_module, NULL);
	tcase_add_test(reading, whole);
	tcase_add_loop_test(reading, page_is_protected, 0, PAGES);
	tcase_add_loop_test(reading, page_is_unmapped, 0, PAGES);
	tcase_add_test(reading, notes_are_unmapped);
	suite_add_tcase(suite, reading);
	return run_suite(suite);
}
