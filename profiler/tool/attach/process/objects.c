/* SPDX-License-Identifier: MIT
 *
 * Reads the list of the dynamic linker in another process, and the symbols of the objects in it.
 */
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "copy.h"
#include "objects.h"

enum { OBJECTS_MOST = 10000, SEGMENTS_MOST = 4096, ENTRIES_MOST = 4096 };
/* Of symbols and their names: of a table, and of all that are read. The largest programs have some ten
 * million bytes of exported names. */
enum { TABLE_MOST = 256 << 20, TABLES_MOST = 512 << 20 };

/* A search through the objects of a process. */
struct search {
	int memory; /* of the process */
	const struct tool_attach_space *space;
	tool_attach_take *take;
	void *context;
	uint64_t bytes; /* of tables that were read */
};

/* ---- symbols --------------------------------------------------------------------------------- */

/* Where an address of the program headers is in the copy. */
static uint64_t place_of(const struct tool_attach_module *module, uint64_t address)
{
	return address + module->bias - module->low;
}

const unsigned char *tool_attach_object_code(const struct tool_attach_object *object,
					     uint64_t address, size_t bytes)
{
	const struct tool_attach_module *module = object->module;
	const uint64_t at = place_of(module, address);

	return module->copy && tool_attach_copy_get(module->copy, at, bytes)
		       ? module->copy->memory + at
		       : NULL;
}

int tool_attach_object_offset(const struct tool_attach_object *object, uint64_t address,
			      uint64_t *offset)
{
	const struct tool_attach_copy *copy = object->module->copy;
	const uint64_t at = place_of(object->module, address);

	for (unsigned i = 0; i < copy->count; i++)
		if (copy->parts[i].is_code && at >= copy->parts[i].low &&
		    at < copy->parts[i].high) {
			*offset = at - copy->parts[i].low + copy->parts[i].offset;
			return 0;
		}
	return -1;
}

/* Reads a table of the file. Returns null if it cannot be had. */
static void *read_table(struct search *search, struct tool_attach_copy *copy, uint64_t offset,
			uint64_t bytes)
{
	void *data;

	if (bytes == 0 || bytes > TABLE_MOST || bytes > TABLES_MOST - search->bytes)
		return NULL;
	search->bytes += bytes;
	data = malloc(bytes);
	if (data && tool_attach_copy_read(copy, offset, data, bytes))
		return data;
	free(data);
	return NULL;
}

static void *read_section(struct search *search, struct tool_attach_copy *copy,
			  const Elf64_Shdr *section)
{
	return section->sh_type != SHT_NOBITS
		       ? read_table(search, copy, section->sh_offset, section->sh_size)
		       : NULL;
}

struct symbols {
	const Elf64_Sym *first;
	size_t count;
	const char *names;
	size_t bytes; /* of the names; the last is a zero byte */
};

static int take_functions(const struct search *search, const struct tool_attach_object *object,
			  const struct symbols *symbols)
{
	int result = 0;

	for (size_t i = 0; i < symbols->count && result == 0; i++) {
		const Elf64_Sym *symbol = &symbols->first[i];

		if (symbol->st_name < symbols->bytes && symbol->st_shndx != SHN_UNDEF &&
		    ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
		    ELF64_ST_BIND(symbol->st_info) != STB_LOCAL)
			result = search->take(search->context, object,
					      symbols->names + symbol->st_name, symbol->st_value);
	}
	return result;
}

static int take_tables(struct search *search, const struct tool_attach_object *object,
		       const Elf64_Shdr *table, const Elf64_Shdr *strings)
{
	struct tool_attach_copy *copy = object->module->copy;
	Elf64_Sym *first = read_section(search, copy, table);
	char *names = first ? read_section(search, copy, strings) : NULL;
	int result = 0;

	if (names) {
		names[strings->sh_size - 1] = '\0';
		result = take_functions(search, object,
					&(struct symbols){first, table->sh_size / sizeof(*first),
							  names, strings->sh_size});
	}
	free(names);
	free(first);
	return result;
}

/* An object has one table of the type. */
static int take_symbols(struct search *search, const struct tool_attach_module *module,
			Elf64_Word type)
{
	const struct tool_attach_object object = {.module = module};
	Elf64_Shdr *sections;
	Elf64_Ehdr file;
	int result = 0;

	if (!module->copy || !tool_attach_copy_read(module->copy, 0, &file, sizeof(file)) ||
	    file.e_shentsize != sizeof(*sections))
		return 0;
	sections = read_table(search, module->copy, file.e_shoff, file.e_shnum * sizeof(*sections));
	for (unsigned i = 0; sections && i < file.e_shnum; i++)
		if (sections[i].sh_type == type && sections[i].sh_link < file.e_shnum) {
			result = take_tables(search, &object, &sections[i],
					     &sections[sections[i].sh_link]);
			break;
		}
	free(sections);
	return result;
}

/* ---- the list ---------------------------------------------------------------------------------- */

static int read_at(int memory, uint64_t address, void *data, size_t bytes)
{
	return address <= INT64_MAX && pread(memory, data, bytes, (off_t)address) == (ssize_t)bytes
		       ? 0
		       : -1;
}

static uint64_t auxiliary(uint64_t type)
{
	static union {
		char bytes[8192];
		Elf64_auxv_t entries[8192 / sizeof(Elf64_auxv_t)];
	} vector;
	const size_t count =
		tool_attach_ask_facts(TOOL_ATTACH_VECTOR, 0, vector.bytes, sizeof(vector)) /
		sizeof(vector.entries[0]);

	for (size_t i = 0; i < count; i++)
		if (vector.entries[i].a_type == type)
			return vector.entries[i].a_un.a_val;
	return 0;
}

/* Reads where the dynamic linker keeps its list from the program's dynamic section. Returns 0 if there
 * is none. */
static uint64_t list_of(int memory, const struct tool_attach_module *program)
{
	const uint64_t headers = auxiliary(AT_PHDR);
	const uint64_t count = auxiliary(AT_PHNUM);
	uint64_t dynamic = 0;
	struct r_debug list = {.r_map = NULL};
	Elf64_Phdr segment;
	Elf64_Dyn entry = {.d_tag = DT_NULL};

	for (uint64_t i = 0; i < count && i < SEGMENTS_MOST; i++)
		if (read_at(memory, headers + i * sizeof(segment), &segment, sizeof(segment)) ==
			    0 &&
		    segment.p_type == PT_DYNAMIC)
			dynamic = segment.p_vaddr + program->bias;
	if (dynamic == 0)
		return 0;
	for (int i = 0; i < ENTRIES_MOST; i++) {
		if (read_at(memory, dynamic, &entry, sizeof(entry)) != 0)
			return 0;
		dynamic += sizeof(entry);
		if (entry.d_tag == DT_NULL || entry.d_tag == DT_DEBUG)
			break;
	}
	if (entry.d_tag != DT_DEBUG || entry.d_un.d_ptr == 0 ||
	    read_at(memory, entry.d_un.d_ptr, &list, sizeof(list)) != 0)
		return 0;
	return (uintptr_t)list.r_map;
}

static int search_list(struct search *search, uint64_t at)
{
	struct link_map object;
	int result = 0;

	for (int i = 0; at != 0 && i < OBJECTS_MOST && result == 0; i++) {
		const struct tool_attach_module *module;

		if (read_at(search->memory, at, &object, sizeof(object)) != 0)
			break;
		module = tool_attach_space_module(search->space, (uintptr_t)object.l_ld);
		if (module)
			result = take_symbols(search, module, SHT_DYNSYM);
		at = (uintptr_t)object.l_next;
	}
	return result;
}

int tool_attach_objects_search(const struct tool_attach_space *space, tool_attach_take *take,
			       void *context)
{
	const struct tool_attach_module *program =
		tool_attach_space_module(space, auxiliary(AT_ENTRY));
	struct search search = {.space = space, .take = take, .context = context};
	uint64_t list;
	int result;

	search.memory = tool_attach_ask_memory();
	if (search.memory < 0)
		return 0;
	list = program ? list_of(search.memory, program) : 0;
	result = !program    ? 0
		 : list != 0 ? search_list(&search, list)
			     : take_symbols(&search, program, SHT_SYMTAB);
	close(search.memory);
	return result;
}
