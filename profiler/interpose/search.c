/* SPDX-License-Identifier: MIT
 *
 * Finds functions in the symbol tables of the loaded objects. The stub never calls dlsym or dlopen
 * for that. A dlsym that finds nothing leaves an error for dlerror, which the program would take for
 * its own. The next call of the dynamic linker frees the text of that error. A program's own free
 * that calls dlsym at its first use would then call itself without end.
 */
#include <stdatomic.h>
#include <string.h>

#include "stub.h"

/* Returns the address of a function that may choose its implementation when it is looked up. */
static uintptr_t resolve(const struct link_map *map, const ElfW(Sym) * symbol)
{
	const uintptr_t address = map->l_addr + symbol->st_value;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC)
		return address;
	return ((uintptr_t(*)(void))address)();
}

static const ElfW(Sym) * symbol_in(const struct link_map *map, const char *name)
{
	struct incstack__elf_symbols symbols;

	if (!incstack__elf_symbols_read(&symbols, INCSTACK__ELF_WHOLE_MEMORY, map->l_addr,
					map->l_ld))
		return NULL;
	return incstack__elf_symbol(&symbols, name);
}

static uintptr_t function_in(const struct link_map *map, const char *name)
{
	const ElfW(Sym) *symbol = symbol_in(map, name);

	return symbol ? resolve(map, symbol) : 0;
}

/* The last object of the global scope. Objects up to it are never unloaded. */
static const struct link_map *_Atomic last;

__attribute__((constructor(101))) static void find_last(void)
{
	const struct link_map *map = incstack__stub_object((uintptr_t)&last);

	while (map && map->l_next)
		map = map->l_next;
	atomic_store_explicit(&last, map, memory_order_relaxed);
}

const ElfW(Sym) * incstack__stub_symbol(const char *name, const struct link_map **of)
{
	const struct link_map *const end = atomic_load_explicit(&last, memory_order_relaxed);
	const struct link_map *map = incstack__stub_object((uintptr_t)&last);
	const ElfW(Sym) *symbol = NULL;

	while (!symbol && map && map != end && (map = map->l_next) != NULL)
		symbol = symbol_in(map, name);
	*of = map;
	return symbol;
}

uintptr_t incstack__stub_next_function(const char *name)
{
	const struct link_map *map;
	const ElfW(Sym) *symbol = incstack__stub_symbol(name, &map);

	return symbol ? resolve(map, symbol) : 0;
}

static bool has_name(const struct link_map *map, const char *name)
{
	const char *slash = strrchr(map->l_name, '/');

	return strcmp(slash ? slash + 1 : map->l_name, name) == 0;
}

static const struct link_map *object_named(const char *file)
{
	const struct link_map *map = incstack__stub_object((uintptr_t)&last);

	while (map && !has_name(map, file))
		map = map->l_next;
	return map;
}

uintptr_t incstack__stub_function_in(const char *file, const char *name)
{
	const struct link_map *map = object_named(file);

	return map ? function_in(map, name) : 0;
}

/* Returns the name of the library that the object needs at this place of its list, or null. */
static const char *needed(const struct link_map *map, const ElfW(Dyn) * at)
{
	const ElfW(Dyn) *d = map->l_ld;

	while (at->d_tag == DT_NEEDED && d->d_tag != DT_STRTAB && d->d_tag != DT_NULL)
		d++;
	if (at->d_tag != DT_NEEDED || d->d_tag != DT_STRTAB)
		return NULL;
	return (const char *)incstack__elf_pointer(map->l_addr, d->d_un.d_ptr) + at->d_un.d_val;
}

uintptr_t incstack__stub_function_for(const struct link_map *map, const char *name, int depth)
{
	const ElfW(Dyn) *const first = map ? map->l_ld : NULL;
	uintptr_t found = 0;

	for (int level = 1; level <= depth; level++)
		for (const ElfW(Dyn) *d = first; d && d->d_tag != DT_NULL && !found; d++) {
			const char *file = needed(map, d);
			const struct link_map *library = file ? object_named(file) : NULL;

			if (library && level == 1)
				found = function_in(library, name);
			else if (library)
				found = incstack__stub_function_for(library, name, level - 1);
		}
	return found;
}
