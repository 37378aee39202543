/* SPDX-License-Identifier: MIT
 *
 * The names of functions of this program, static ones, too, from its symbol table. Functions of shared
 * libraries have the names that the dynamic linker knows.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols.h"

static struct symbol {
	uintptr_t low, high;
	const char *name;
} * symbols;
static size_t count;

static int compare(const void *a, const void *b)
{
	const struct symbol *one = a, *other = b;
	return (one->low > other->low) - (one->low < other->low);
}

/* How far the program lies from where it was linked: the dynamic linker shows the program first. */
static int tell_base(struct dl_phdr_info *info, size_t size, void *base)
{
	*(uintptr_t *)base = info->dlpi_addr;
	return (void)size, 1;
}

static void add_table(const char *file, const Elf64_Shdr *sections, const Elf64_Shdr *table)
{
	const Elf64_Sym *all = (const void *)(file + table->sh_offset);
	const char *names = file + sections[table->sh_link].sh_offset;
	const size_t n = table->sh_size / sizeof(*all);
	uintptr_t base = 0;
	dl_iterate_phdr(tell_base, &base);
	symbols = malloc(n * sizeof(*symbols));
	for (size_t i = 0; symbols && i < n; i++)
		if (ELF64_ST_TYPE(all[i].st_info) == STT_FUNC && all[i].st_size)
			symbols[count++] = (struct symbol){base + all[i].st_value,
							   base + all[i].st_value + all[i].st_size,
							   names + all[i].st_name};
	if (count)
		qsort(symbols, count, sizeof(*symbols), compare);
}

int symbols_open(void)
{
	struct stat info;
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const char *file = MAP_FAILED;
	if (fd >= 0 && fstat(fd, &info) == 0)
		file = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (file == MAP_FAILED)
		return 0;
	const Elf64_Ehdr *header = (const void *)file;
	const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
	for (unsigned int i = 0; i < header->e_shnum && !symbols; i++)
		if (sections[i].sh_type == SHT_SYMTAB)
			add_table(file, sections, &sections[i]);
	return count > 0;
}

const char *symbols_name(uintptr_t address)
{
	size_t low = 0, high = count;
	Dl_info info;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (symbols[middle].high <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < count && symbols[low].low <= address)
		return symbols[low].name;
	return dladdr((void *)address, &info) ? info.dli_sname : NULL;
}
