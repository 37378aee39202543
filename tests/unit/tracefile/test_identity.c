/* SPDX-License-Identifier: MIT
 *
 * Tests how a module is told from other builds of it: its build-id, or a checksum, in modules that are
 * made here and may be malformed.
 */
#include <stdlib.h>
#include <string.h>

#include "tracefile/identity.h"
#include "run_suite.h"

enum { BASE = 0x1000, BYTES = 8 << 20, NOTES = 0x200 };

static unsigned char memory[BYTES];
static Elf64_Phdr segments[4];
static struct incstack__identity identity;
static unsigned long outside, read_bytes;

static bool copy(const void *context, uint64_t address, void *to, size_t bytes)
{
	(void)context;
	read_bytes += bytes;
	if (address < BASE || address - BASE > BYTES || bytes > BYTES - (address - BASE)) {
		outside++;
		return false;
	}
	memcpy(to, memory + (address - BASE), bytes);
	return true;
}

static struct incstack__identity_source source_of(unsigned count)
{
	outside = read_bytes = 0;
	return (struct incstack__identity_source){segments, count, copy, NULL};
}

static bool build_id(unsigned count)
{
	const struct incstack__identity_source source = source_of(count);
	const bool found = incstack__identity_build_id(&source, &identity);

	ck_assert_uint_eq(outside, 0);
	ck_assert_uint_le(read_bytes, 1 << 20);
	ck_assert(found == (identity.kind == INCSTACK__IDENTITY_BUILD_ID));
	return found;
}

static bool content(unsigned count)
{
	const struct incstack__identity_source source = source_of(count);
	const bool found = incstack__identity_content(&source, &identity);

	ck_assert_uint_eq(outside, 0);
	ck_assert(found == (identity.kind == INCSTACK__IDENTITY_CONTENT));
	return found;
}

static void set_segment(unsigned number, uint32_t type, uint32_t flags, uint64_t at, uint64_t bytes)
{
	segments[number] = (Elf64_Phdr){.p_type = type,
					.p_flags = flags,
					.p_offset = BASE + at,
					.p_vaddr = BASE + at,
					.p_filesz = bytes,
					.p_memsz = bytes,
					.p_align = 4};
}

static size_t put_note(size_t at, uint32_t type, const char *owner, uint32_t bytes)
{
	const Elf64_Nhdr note = {(uint32_t)strlen(owner) + 1, bytes, type};
	const size_t name = (note.n_namesz + 3) & ~3u;

	memcpy(memory + at, &note, sizeof(note));
	strcpy((char *)memory + at + sizeof(note), owner);
	for (uint32_t i = 0; i < bytes && i < 256; i++)
		memory[at + sizeof(note) + name + i] = (unsigned char)(i + 1);
	return at + sizeof(note) + name + ((bytes + 3) & ~3u);
}

static void start(void)
{
	memset(memory, 0, sizeof(memory));
	set_segment(0, PT_LOAD, PF_R, 0, 0x1000);
	set_segment(1, PT_NOTE, PF_R, NOTES, 0x100);
}

START_TEST(the_build_id_is_found_among_notes)
{
	size_t at;

	start();
	ck_assert(!build_id(2));
	at = put_note(NOTES, 1, "GNU", 16);
	at = put_note(at, NT_GNU_BUILD_ID, "Go", 8);
	put_note(at, NT_GNU_BUILD_ID, "GNU", 20);
	ck_assert(build_id(2));
	ck_assert_uint_eq(identity.length, 20);
	ck_assert_uint_eq(identity.bytes[0], 1);
	ck_assert_uint_eq(identity.bytes[19], 20);
	put_note(NOTES, NT_GNU_BUILD_ID, "GNU", 200);
	ck_assert(build_id(2));
	ck_assert_uint_eq(identity.length, INCSTACK__IDENTITY_MOST);
}
END_TEST

START_TEST(malformed_notes_give_none)
{
	static const uint32_t sizes[] = {0, 1, 0x7fffffff, 0xfffffff0, 0xffffffff};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		start();
		put_note(NOTES, NT_GNU_BUILD_ID, "GNU", 20);
		memcpy(memory + NOTES, &sizes[i], sizeof(sizes[i])); /* of the name */
		ck_assert(!build_id(2));
		start();
		put_note(0x1000 - 0x20, NT_GNU_BUILD_ID, "GNU",
			 sizes[i]); /* at the segment's end */
		segments[1].p_vaddr = BASE + 0x1000 - 0x20;
		ck_assert(build_id(2) == (sizes[i] == 1));
	}
	start();
	set_segment(1, PT_NOTE, PF_R, 0x2000, 0x100); /* outside */
	ck_assert(!build_id(2));
	set_segment(1, PT_NOTE, PF_R, NOTES, UINT64_MAX);
	segments[1].p_vaddr = UINT64_MAX - 8;
	ck_assert(!build_id(2));
	set_segment(0, PT_LOAD, PF_W, 0, 0x1000); /* cannot be read */
	set_segment(1, PT_NOTE, PF_R, NOTES, 0x100);
	put_note(NOTES, NT_GNU_BUILD_ID, "GNU", 20);
	ck_assert(!build_id(2));
}
END_TEST

static uint64_t sum_of(unsigned count)
{
	uint64_t sum;

	ck_assert(content(count));
	memcpy(&sum, identity.bytes, sizeof(sum));
	return sum;
}

START_TEST(the_content_is_what_cannot_be_written)
{
	uint64_t before;

	start();
	set_segment(0, PT_LOAD, PF_R | PF_X, 0, 0x12345);
	set_segment(1, PT_LOAD, PF_R | PF_W, 0x20000, 0x1000);
	before = sum_of(2);
	memory[0x20000]++;
	ck_assert_uint_eq(sum_of(2), before);
	for (size_t at = 0; at < 0x12345; at += 0x777) {
		memory[at]++;
		ck_assert_uint_ne(sum_of(2), before);
		memory[at]--;
	}
	memory[0x12344]++;
	ck_assert_uint_ne(sum_of(2), before);
	memory[0x12344]--;
	segments[0].p_filesz--;
	ck_assert_uint_ne(sum_of(2), before);
	segments[0].p_offset = 0; /* the header of the file says where the sections are */
	before = sum_of(2);
	memory[sizeof(Elf64_Ehdr) - 1]++;
	ck_assert_uint_eq(sum_of(2), before);
	memory[sizeof(Elf64_Ehdr)]++;
	ck_assert_uint_ne(sum_of(2), before);
}
END_TEST

/* Of a large module pieces are read, and the table of its functions. */
START_TEST(a_large_module_is_sampled)
{
	uint64_t before;

	start();
	set_segment(0, PT_LOAD, PF_R | PF_X, 0, BYTES);
	set_segment(1, PT_GNU_EH_FRAME, PF_R, 5000001, 0x20000);
	before = sum_of(2);
	ck_assert_uint_le(read_bytes, (2 << 20) + 0x20000);
	memory[5000001 + 0x1ffff]++;
	ck_assert_uint_ne(sum_of(2), before);
	memory[5000001 + 0x1ffff]--;
	memset(memory + 100000, 1, 10000);
	ck_assert_uint_ne(sum_of(2), before);
	set_segment(1, PT_GNU_EH_FRAME, PF_R, BYTES, 0x20000); /* outside */
	ck_assert(!content(2));
	set_segment(0, PT_LOAD, PF_R, 0, UINT64_MAX);
	segments[0].p_vaddr = UINT64_MAX - 10;
	ck_assert_int_eq(
		incstack__identity_content(
			&(struct incstack__identity_source){segments, 1, copy, NULL}, &identity),
		false);
}
END_TEST

START_TEST(identities_differ_in_all_of_it)
{
	struct incstack__identity a = {INCSTACK__IDENTITY_BUILD_ID, 3, {1, 2, 3}}, b = a;

	ck_assert(incstack__identity_same(&a, &b));
	b.bytes[2]++;
	ck_assert(!incstack__identity_same(&a, &b));
	b = a;
	b.bytes[3]++; /* not used */
	ck_assert(incstack__identity_same(&a, &b));
	b.length = 2;
	ck_assert(!incstack__identity_same(&a, &b));
	b = a;
	b.kind = INCSTACK__IDENTITY_CONTENT;
	ck_assert(!incstack__identity_same(&a, &b));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("identity");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, the_build_id_is_found_among_notes);
	tcase_add_test(tcase, malformed_notes_give_none);
	tcase_add_test(tcase, the_content_is_what_cannot_be_written);
	tcase_add_test(tcase, a_large_module_is_sampled);
	tcase_add_test(tcase, identities_differ_in_all_of_it);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
