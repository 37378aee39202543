/* SPDX-License-Identifier: MIT
 *
 * The dynamic symbol table of a loaded object.
 */
#ifndef INCSTACK__ELF_SYMBOLS_H
#define INCSTACK__ELF_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf_image.h"

struct incstack__elf_symbols {
	struct incstack__elf_image image;
	uintptr_t bias;
	const ElfW(Sym) * table;
	const char *names;
	const uint32_t *gnu_hash;
	const uint32_t *sysv_hash;
	const ElfW(Half) * versions; /* null: the symbols have no versions */
	/* With a GNU hash table, symbols of lower numbers belong to other objects; else it is the number
	 * of all symbols. */
	uint32_t imports;
};

/* A name, with the hash of it that a GNU hash table has. The bytes include the zero. */
struct incstack__elf_name {
	const char *text;
	size_t bytes;
	uint32_t hash;
};

static inline struct incstack__elf_name incstack__elf_name(const char *text)
{
	struct incstack__elf_name name = {text, 1, 5381};
	for (; text[name.bytes - 1]; name.bytes++)
		name.hash = name.hash * 33 + (unsigned char)text[name.bytes - 1];
	return name;
}

/* The dynamic linker has relocated the pointers of the dynamic section, unless that section is
 * read-only, as in the vDSO. */
static inline const void *incstack__elf_pointer(uintptr_t bias, ElfW(Addr) value)
{
	return (const void *)(value < bias ? value + bias : value);
}

/* A GNU hash table begins with four words: the number of buckets, the number of the first symbol in the
 * table, the number of words in the Bloom filter, and a shift. The filter, the buckets and the chains
 * follow. The other kind begins with the number of buckets and the number of symbols; it has more than four
 * words, too. */
enum { INCSTACK__ELF_GNU_HEAD = 4 };

/* Reads where the tables are from the dynamic section, which may be null. Returns false if the object has
 * none. */
static inline bool incstack__elf_symbols_read(struct incstack__elf_symbols *s,
					      struct incstack__elf_image image, uintptr_t bias,
					      const ElfW(Dyn) * dynamic)
{
	*s = (struct incstack__elf_symbols){.image = image, .bias = bias};
	for (const ElfW(Dyn) *d = dynamic;
	     d && incstack__elf_has(&image, (uintptr_t)d, sizeof(*d)) && d->d_tag != DT_NULL; d++) {
		const void *p = incstack__elf_pointer(bias, d->d_un.d_ptr);
		if (d->d_tag == DT_SYMTAB)
			s->table = p;
		else if (d->d_tag == DT_STRTAB)
			s->names = p;
		else if (d->d_tag == DT_GNU_HASH)
			s->gnu_hash = p;
		else if (d->d_tag == DT_HASH)
			s->sysv_hash = p;
		else if (d->d_tag == DT_VERSYM)
			s->versions = p;
	}
	const uint32_t *hash = s->gnu_hash ? s->gnu_hash : s->sysv_hash;
	if (!s->table || !s->names || !hash ||
	    !incstack__elf_has(&image, (uintptr_t)hash, INCSTACK__ELF_GNU_HEAD * sizeof(*hash)))
		return false;
	s->imports = hash[1];
	return true;
}

/* Returns a symbol of the table, or null if it cannot be read. */
static inline const ElfW(Sym) *
	incstack__elf_symbol_at(const struct incstack__elf_symbols *s, uint32_t number)
{
	const uintptr_t at = (uintptr_t)s->table + number * sizeof(*s->table);
	return incstack__elf_has(&s->image, at, sizeof(*s->table)) ? (const ElfW(Sym) *)at : NULL;
}

static inline bool incstack__elf_symbol_has_name(const struct incstack__elf_symbols *s,
						 const ElfW(Sym) * symbol,
						 struct incstack__elf_name name)
{
	const char *own = s->names + symbol->st_name;
	size_t i = 0;
	if (!incstack__elf_has(&s->image, (uintptr_t)own, name.bytes))
		return false;
	while (i < name.bytes && own[i] == name.text[i])
		i++;
	return i == name.bytes;
}

/* Returns the symbol of that number if the object defines it and it has that name, else null. A hidden
 * version of a function is only for programs that were linked with an older library; dlsym does not find it
 * either. */
static inline const ElfW(Sym) * incstack__elf_symbol_if(const struct incstack__elf_symbols *s,
							uint32_t number,
							struct incstack__elf_name name)
{
	const ElfW(Sym) *symbol = incstack__elf_symbol_at(s, number);
	if (!symbol || symbol->st_shndx == SHN_UNDEF ||
	    !incstack__elf_symbol_has_name(s, symbol, name))
		return NULL;
	const ElfW(Half) *version = s->versions ? &s->versions[number] : NULL;
	if (version && (!incstack__elf_has(&s->image, (uintptr_t)version, sizeof(*version)) ||
			*version & 0x8000))
		return NULL;
	return symbol;
}

static inline const ElfW(Sym) * incstack__elf_gnu_find(const struct incstack__elf_symbols *s,
						       struct incstack__elf_name name)
{
	const uint32_t *head = s->gnu_hash;
	const size_t filter = head[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	const uint32_t *buckets = head + INCSTACK__ELF_GNU_HEAD + filter;
	const uint32_t *bucket = head[0] ? &buckets[name.hash % head[0]] : NULL;
	if (!bucket || !incstack__elf_has(&s->image, (uintptr_t)bucket, sizeof(*bucket)) ||
	    *bucket < s->imports)
		return NULL;
	const uint32_t *link = buckets + head[0] + (*bucket - s->imports);
	for (uint32_t i = *bucket; incstack__elf_has(&s->image, (uintptr_t)link, sizeof(*link));
	     i++, link++) {
		const ElfW(Sym) *symbol =
			(*link | 1) == (name.hash | 1) ? incstack__elf_symbol_if(s, i, name) : NULL;
		if (symbol || *link & 1)
			return symbol;
	}
	return NULL;
}

/* Tries each symbol. */
static inline const ElfW(Sym) * incstack__elf_sysv_find(const struct incstack__elf_symbols *s,
							struct incstack__elf_name name)
{
	const ElfW(Sym) *found = NULL;
	for (uint32_t i = 1; i < s->imports && !found && incstack__elf_symbol_at(s, i); i++)
		found = incstack__elf_symbol_if(s, i, name);
	return found;
}

/* Returns the symbol, or null if the object defines none of that name. */
static inline const ElfW(Sym) *
	incstack__elf_symbol(const struct incstack__elf_symbols *s, const char *text)
{
	const struct incstack__elf_name name = incstack__elf_name(text);
	return s->gnu_hash ? incstack__elf_gnu_find(s, name) : incstack__elf_sysv_find(s, name);
}

/* Returns the address of the function, or 0 if the object exports none of that name. */
static inline uintptr_t incstack__elf_function(const struct link_map *map, const char *name)
{
	struct incstack__elf_symbols s;
	const ElfW(Sym) *symbol = NULL;
	if (incstack__elf_symbols_read(&s, INCSTACK__ELF_WHOLE_MEMORY, map->l_addr, map->l_ld))
		symbol = incstack__elf_symbol(&s, name);
	if (!symbol || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)
		return 0;
	return map->l_addr + symbol->st_value;
}

#endif
