/* SPDX-License-Identifier: MIT
 *
 * Finds a symbol in the dynamic symbol table of a loaded object by reading memory only:
 * no lock, no allocation, no call into the dynamic linker.
 */
#ifndef INCSTACK__ELF_SYMBOL_H
#define INCSTACK__ELF_SYMBOL_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct incstack__elf_tables {
	uintptr_t bias;
	const ElfW(Sym) * symbols;
	const char *names;
	const uint32_t *gnu_hash;
	const uint32_t *sysv_hash;
	const ElfW(Half) * versions; /* null: the symbols have no versions */
};

/* The dynamic linker has relocated the pointers of the dynamic section, unless that section
 * is read-only, as in the vDSO. */
static inline const void *incstack__elf_pointer(uintptr_t bias, ElfW(Addr) value)
{
	return (const void *)(value < bias ? value + bias : value);
}

/* Reads the tables of an object from its bias and its dynamic section, which may be null.
 * Returns false if the object has no such tables. */
static inline bool incstack__elf_tables_read(uintptr_t bias, const ElfW(Dyn) * dynamic,
					     struct incstack__elf_tables *t)
{
	*t = (struct incstack__elf_tables){.bias = bias};
	for (const ElfW(Dyn) *d = dynamic; d && d->d_tag != DT_NULL; d++) {
		const void *p = incstack__elf_pointer(bias, d->d_un.d_ptr);
		if (d->d_tag == DT_SYMTAB)
			t->symbols = p;
		else if (d->d_tag == DT_STRTAB)
			t->names = p;
		else if (d->d_tag == DT_GNU_HASH)
			t->gnu_hash = p;
		else if (d->d_tag == DT_HASH)
			t->sysv_hash = p;
		else if (d->d_tag == DT_VERSYM)
			t->versions = p;
	}
	return t->symbols && t->names && (t->gnu_hash || t->sysv_hash);
}

/* Whether the object defines symbol i and the symbol has that name. A hidden version of a function is
 * only for programs that were linked with an older library; dlsym does not find it either. */
static inline bool incstack__elf_is(const struct incstack__elf_tables *t, uint32_t i,
				    const char *name)
{
	const char *own = t->names + t->symbols[i].st_name;
	if (t->symbols[i].st_shndx == SHN_UNDEF || (t->versions && t->versions[i] & 0x8000))
		return false;
	while (*name && *own == *name) {
		name++;
		own++;
	}
	return *own == *name;
}

/* Returns the number of the symbol, or 0. The table begins with four words: the number of
 * buckets, the number of the first symbol in the table, the number of words in the Bloom
 * filter, and a shift. The filter, the buckets and the chains follow. */
static inline uint32_t incstack__elf_gnu_find(const struct incstack__elf_tables *t,
					      const char *name)
{
	const uint32_t *head = t->gnu_hash;
	const uint32_t *buckets = head + 4 + head[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	const uint32_t *chains = buckets + head[0];
	uint32_t hash = 5381;
	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	uint32_t i = head[0] ? buckets[hash % head[0]] : 0;
	if (i < head[1])
		return 0;
	for (;; i++) {
		uint32_t link = chains[i - head[1]];
		if ((link | 1) == (hash | 1) && incstack__elf_is(t, i, name))
			return i;
		if (link & 1)
			return 0;
	}
}

/* Returns the symbol, or null if the object defines none of that name. */
static inline const ElfW(Sym) *
	incstack__elf_symbol(const struct incstack__elf_tables *t, const char *name)
{
	uint32_t found = 0;
	if (t->gnu_hash)
		found = incstack__elf_gnu_find(t, name);
	else
		for (uint32_t i = 1; i < t->sysv_hash[1] && !found; i++)
			found = incstack__elf_is(t, i, name) ? i : 0;
	return found ? &t->symbols[found] : NULL;
}

/* Returns the address of the function, or 0 if the object exports none of that name. */
static inline uintptr_t incstack__elf_function(const struct link_map *map, const char *name)
{
	struct incstack__elf_tables t;
	const ElfW(Sym) *symbol = NULL;
	if (incstack__elf_tables_read(map->l_addr, map->l_ld, &t))
		symbol = incstack__elf_symbol(&t, name);
	if (!symbol || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)
		return 0;
	return map->l_addr + symbol->st_value;
}

#endif
