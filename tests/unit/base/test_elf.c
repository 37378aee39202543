/* SPDX-License-Identifier: MIT
 *
 * Reading ELF objects: what is found is what the dynamic linker finds, and of a damaged object nothing
 * outside of its bounds is read, where there are pages that cannot be read.
 */
#include <check.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/file.h"
#include "elf/elf_layout.h"
#include "elf/symbols.h"
#include "elf/unwind_index.h"

#include "run_suite.h"

enum { PAGE = 4096, ROUNDS = 200 };

/* libc keeps sys_errlist for older programs only. */
static const char *const names[] = {"malloc",  "getpid",      "qsort",
				    "environ", "sys_errlist", "no_such_function"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static struct incstack__elf_symbols libc; /* where it is loaded */
static struct incstack__elf_symbols copy; /* of its tables, between pages that cannot be read */
static uintptr_t refused;                 /* an address that cannot be had */

static struct link_map *map_of_libc(void)
{
	struct link_map *map;

	ck_assert_int_eq(dlinfo(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), RTLD_DI_LINKMAP, &map),
			 0);
	return map;
}

static bool get(void *context, uintptr_t at, uint64_t bytes)
{
	(void)context;
	return refused < at || refused >= at + bytes;
}

static const void *moved(const void *table, const struct incstack__elf_layout *layout, char *to)
{
	return table ? to + ((uintptr_t)table - layout->low) : NULL;
}

/* Copies the first segment, which has all the tables. */
static void setup(void)
{
	const struct link_map *map = map_of_libc();
	struct incstack__elf_search search = {.address = (uintptr_t)map->l_ld};
	const ElfW(Ehdr) * header;
	const ElfW(Phdr) * first;
	size_t bytes;
	char *memory;

	ck_assert(incstack__elf_symbols_read(&libc, INCSTACK__ELF_WHOLE_MEMORY, map->l_addr,
					     map->l_ld));
	ck_assert_int_eq(dl_iterate_phdr(incstack__elf_contains, &search), 1);
	ck_assert_uint_eq(search.layout.dynamic, (uintptr_t)map->l_ld);
	header = (const void *)search.layout.low;
	first = (const void *)(search.layout.low + header->e_phoff);
	while (first->p_type != PT_LOAD)
		first++;
	bytes = (first->p_filesz + PAGE - 1) / PAGE * PAGE;
	memory = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	memory += PAGE;
	ck_assert_int_eq(mprotect(memory, bytes, PROT_READ | PROT_WRITE), 0);
	memcpy(memory, (const void *)search.layout.low, first->p_filesz);
	copy = (struct incstack__elf_symbols){
		.image = {(uintptr_t)memory, (uintptr_t)memory + bytes, get, NULL},
		.bias = map->l_addr,
		.table = moved(libc.table, &search.layout, memory),
		.names = moved(libc.names, &search.layout, memory),
		.gnu_hash = moved(libc.gnu_hash, &search.layout, memory),
		.versions = moved(libc.versions, &search.layout, memory),
		.imports = libc.imports,
	};
	refused = 0;
}

START_TEST(names_are_found)
{
	void *handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	for (int i = 0; i < NAMES; i++) {
		const ElfW(Sym) *one = incstack__elf_symbol(&libc, names[i]);
		const ElfW(Sym) *other = incstack__elf_symbol(&copy, names[i]);
		const void *known = dlsym(handle, names[i]);

		ck_assert_int_eq(one != NULL, known != NULL);
		ck_assert_int_eq(other != NULL, known != NULL);
		if (one) {
			ck_assert_ptr_eq((const void *)(libc.bias + one->st_value), known);
			ck_assert_uint_eq(other->st_value, one->st_value);
		}
	}
}
END_TEST

/* The older kind of hash table. Its words after the second are not used. */
START_TEST(names_are_found_without_a_gnu_hash)
{
	const uint32_t hash[2] = {
		1, (uint32_t)(((uintptr_t)libc.names - (uintptr_t)libc.table) / sizeof(ElfW(Sym)))};
	const struct link_map *map = map_of_libc();
	const ElfW(Dyn) dynamic[] = {
		{.d_tag = DT_SYMTAB, .d_un.d_ptr = (uintptr_t)libc.table},
		{.d_tag = DT_STRTAB, .d_un.d_ptr = (uintptr_t)libc.names},
		{.d_tag = DT_VERSYM, .d_un.d_ptr = (uintptr_t)libc.versions},
		{.d_tag = DT_HASH, .d_un.d_ptr = (uintptr_t)hash},
		{.d_tag = DT_NULL},
	};
	struct incstack__elf_symbols symbols;

	ck_assert(incstack__elf_symbols_read(&symbols, INCSTACK__ELF_WHOLE_MEMORY, map->l_addr,
					     dynamic));
	for (int i = 0; i < NAMES; i++)
		ck_assert_ptr_eq(incstack__elf_symbol(&symbols, names[i]),
				 incstack__elf_symbol(&libc, names[i]));
}
END_TEST

/* What cannot be had is not read: the hash table, the table of symbols, its names, its versions. */
START_TEST(refused_bytes_hide_a_symbol)
{
	const ElfW(Sym) *symbol = incstack__elf_symbol(&copy, "malloc");
	const size_t number = (size_t)(symbol - copy.table);
	const void *const needed[] = {symbol, &copy.names[symbol->st_name], &copy.versions[number],
				      &copy.gnu_hash[INCSTACK__ELF_GNU_HEAD + copy.gnu_hash[2] * 2 +
						     copy.gnu_hash[0] + number - copy.imports]};
	struct incstack__elf_symbols symbols;

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		refused = (uintptr_t)needed[i];
		ck_assert_ptr_eq(incstack__elf_symbol(&copy, "malloc"), NULL);
	}
	refused = (uintptr_t)map_of_libc()->l_ld;
	ck_assert(!incstack__elf_symbols_read(
		&symbols, (struct incstack__elf_image){0, UINTPTR_MAX, get, NULL}, libc.bias,
		(const void *)refused));
	refused = (uintptr_t)libc.gnu_hash;
	ck_assert(!incstack__elf_symbols_read(
		&symbols, (struct incstack__elf_image){0, UINTPTR_MAX, get, NULL}, libc.bias,
		map_of_libc()->l_ld));
}
END_TEST

/* In every second round the head is damaged, too. Each look reads only what lies between the pages. */
START_TEST(damaged_tables_are_read_within_bounds)
{
	const size_t bytes = copy.image.high - copy.image.low;
	uint32_t *hash = (uint32_t *)(uintptr_t)copy.gnu_hash;
	uint32_t head[INCSTACK__ELF_GNU_HEAD];

	memcpy(head, hash, sizeof(head));
	for (int i = 0; i < ROUNDS; i++) {
		memcpy(hash, head, sizeof(head));
		for (int k = 0; k < 2000; k++)
			*(uint32_t *)(copy.image.low + (size_t)random() % (bytes / 4) * 4) =
				(uint32_t)random() << (random() % 2 * 8);
		for (int k = 0; k < INCSTACK__ELF_GNU_HEAD && i % 2; k++)
			hash[k] = (uint32_t)random() >> (random() % 31);
		copy.imports = hash[1];
		for (int k = 0; k < NAMES; k++)
			(void)incstack__elf_symbol(&copy, names[k]);
	}
}
END_TEST

START_TEST(no_symbols_without_tables)
{
	const ElfW(Dyn) end = {.d_tag = DT_NULL};
	struct incstack__elf_symbols symbols;

	ck_assert(!incstack__elf_symbols_read(&symbols, INCSTACK__ELF_WHOLE_MEMORY, 0, NULL));
	ck_assert(!incstack__elf_symbols_read(&symbols, INCSTACK__ELF_WHOLE_MEMORY, 0, &end));
}
END_TEST

START_TEST(a_range_lies_in_one_segment)
{
	const ElfW(Phdr) segments[] = {
		{.p_type = PT_NOTE, .p_flags = PF_R, .p_vaddr = 0, .p_filesz = 1000},
		{.p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = 0, .p_filesz = 1000},
		{.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = 100, .p_filesz = 50},
		{.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = 150, .p_filesz = 50},
	};

	ck_assert_ptr_eq(incstack__elf_segment_of(segments, 4, 100, 50), &segments[2]);
	ck_assert_ptr_eq(incstack__elf_segment_of(segments, 4, 199, 1), &segments[3]);
	ck_assert_ptr_eq(incstack__elf_segment_of(segments, 4, 100, 51), NULL);
	ck_assert_ptr_eq(incstack__elf_segment_of(segments, 4, 99, 1), NULL);
	ck_assert_ptr_eq(incstack__elf_segment_of(segments, 4, 101, UINT64_MAX), NULL);
	ck_assert_ptr_eq(incstack__elf_segment_of(segments, 4, 201, 0), NULL);
}
END_TEST

START_TEST(an_index_lies_in_the_image)
{
	uint32_t words[16] = {0x3b031b01, 0, 2};
	struct incstack__elf_image image = {(uintptr_t)words, (uintptr_t)(words + 7), NULL, NULL};

	ck_assert_ptr_eq(incstack__elf_unwind_index_in(&image, image.low), (void *)words);
	ck_assert_ptr_eq(incstack__elf_unwind_index_in(&image, 0), NULL);
	image.high--;
	ck_assert_ptr_eq(incstack__elf_unwind_index_in(&image, image.low), NULL);
	image.high++;
	words[2] = UINT32_MAX;
	ck_assert_ptr_eq(incstack__elf_unwind_index_in(&image, image.low), NULL);
	words[2] = 0;
	ck_assert_ptr_eq(incstack__elf_unwind_index_in(&image, image.low), NULL);
	words[2] = 2;
	words[0]++;
	ck_assert_ptr_eq(incstack__elf_unwind_index_in(&image, image.low), NULL);
}
END_TEST

START_TEST(a_function_is_found_in_the_index)
{
	const int32_t starts[] = {10, 20, 40};
	_Alignas(8) char memory[64] = {0};
	struct incstack__elf_unwind_index *index = (void *)memory;

	index->count = 3;
	for (int i = 0; i < 3; i++)
		index->table[i].low = starts[i];
	ck_assert_uint_eq(incstack__elf_unwind_index_find(index, -5), 0);
	ck_assert_uint_eq(incstack__elf_unwind_index_find(index, 19), 0);
	ck_assert_uint_eq(incstack__elf_unwind_index_find(index, 20), 1);
	ck_assert_uint_eq(incstack__elf_unwind_index_find(index, 39), 1);
	ck_assert_uint_eq(incstack__elf_unwind_index_find(index, 1000), 2);
}
END_TEST

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

START_TEST(headers_of_a_file)
{
	struct incstack__elf_file file = {.read = read_at,
					  .fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
	Elf64_Phdr segment;
	Elf64_Shdr section;

	ck_assert(incstack__elf_file_open(&file) && incstack__elf_file_is_x86_64(&file));
	ck_assert(incstack__elf_file_segments(&file, 0, 1, &segment));
	ck_assert_uint_eq(segment.p_type, PT_PHDR);
	ck_assert(incstack__elf_file_sections(&file, file.header.e_shstrndx, 1, &section));
	ck_assert_uint_eq(section.sh_type, SHT_STRTAB);
	file.header.e_phentsize++;
	ck_assert(!incstack__elf_file_segments(&file, 0, 1, &segment));
	file.header.e_shentsize++;
	ck_assert(!incstack__elf_file_sections(&file, 0, 1, &section));
	close(file.fd);
}
END_TEST

START_TEST(a_file_that_is_no_object)
{
	struct incstack__elf_file file = {.read = read_at,
					  .fd = memfd_create("object", MFD_CLOEXEC)};
	const Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
				   .e_machine = EM_X86_64};

	ck_assert(!incstack__elf_file_open(&file));
	ck_assert_int_eq(pwrite(file.fd, &header, sizeof(header) - 1, 0), sizeof(header) - 1);
	ck_assert(!incstack__elf_file_open(&file));
	ck_assert_int_eq(pwrite(file.fd, &header, sizeof(header), 0), sizeof(header));
	ck_assert(incstack__elf_file_open(&file) && incstack__elf_file_is_x86_64(&file));
	for (int i = 0; i < SELFMAG; i++) {
		ck_assert_int_eq(pwrite(file.fd, &header, sizeof(header), 0), sizeof(header));
		ck_assert_int_eq(pwrite(file.fd, "?", 1, i), 1);
		ck_assert(!incstack__elf_file_open(&file));
	}
	close(file.fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ELF");
	TCase *symbols = tcase_create("symbols");
	TCase *others = tcase_create("others");

	tcase_add_checked_fixture(symbols, setup, NULL);
	tcase_add_test(symbols, names_are_found);
	tcase_add_test(symbols, names_are_found_without_a_gnu_hash);
	tcase_add_test(symbols, refused_bytes_hide_a_symbol);
	tcase_add_test(symbols, damaged_tables_are_read_within_bounds);
	tcase_add_test(symbols, no_symbols_without_tables);
	tcase_add_test(others, a_range_lies_in_one_segment);
	tcase_add_test(others, an_index_lies_in_the_image);
	tcase_add_test(others, a_function_is_found_in_the_index);
	tcase_add_test(others, headers_of_a_file);
	tcase_add_test(others, a_file_that_is_no_object);
	suite_add_tcase(suite, symbols);
	suite_add_tcase(suite, others);
	return run_suite(suite);
}
