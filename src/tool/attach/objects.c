/* SPDX-License-Identifier: MIT
 *
 * Reads the list of the dynamic linker in another process, and the symbols of the objects in it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* O_CLOEXEC */
#endif
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "objects.h"

enum { OBJECTS_MOST = 10000 };

/* ---- symbols --------------------------------------------------------------------------------- */

const unsigned char *tool_attach_object_code(const struct tool_attach_object *object,
					     uint64_t address, size_t bytes)
{
	const struct tool_attach_module *module = object->module;
	const uint64_t at = address + module->bias - module->low;

	if (module->local == 0 || at > module->high - module->low ||
	    bytes > module->high - module->low - at)
		return NULL;
	return (const unsigned char *)module->local + at;
}

int tool_attach_object_offset(const struct tool_attach_object *object, uint64_t address,
			      uint64_t *offset)
{
	size_t count;
	GElf_Phdr segment;

	if (elf_getphdrnum(object->elf, &count) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(object->elf, (int)i, &segment) != NULL &&
		    segment.p_type == PT_LOAD && segment.p_flags & PF_X &&
		    address - segment.p_vaddr < segment.p_filesz) {
			*offset = address - segment.p_vaddr + segment.p_offset;
			return 0;
		}
	return -1;
}

static int take_section(const struct tool_attach_object *object, Elf_Scn *section,
			tool_attach_take *take, void *context)
{
	GElf_Shdr header;
	Elf_Data *data = elf_getdata(section, NULL);
	int result = 0;
	GElf_Sym symbol;

	if (data == NULL || gelf_getshdr(section, &header) == NULL)
		return 0;
	for (int i = 0; result == 0 && gelf_getsym(data, i, &symbol) != NULL; i++) {
		const char *name = elf_strptr(object->elf, header.sh_link, symbol.st_name);

		if (name != NULL && symbol.st_shndx != SHN_UNDEF &&
		    GELF_ST_TYPE(symbol.st_info) == STT_FUNC &&
		    GELF_ST_BIND(symbol.st_info) != STB_LOCAL)
			result = take(context, object, name, symbol.st_value);
	}
	return result;
}

static int take_symbols(const struct tool_attach_module *module, GElf_Word type,
			tool_attach_take *take, void *context)
{
	struct tool_attach_object object = {.module = module};
	const int fd = open(module->path, O_RDONLY | O_CLOEXEC);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int result = 0;

	if (fd < 0)
		return 0;
	object.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	while (object.elf != NULL && result == 0 &&
	       (section = elf_nextscn(object.elf, section)) != NULL)
		if (gelf_getshdr(section, &header) != NULL && header.sh_type == type)
			result = take_section(&object, section, take, context);
	elf_end(object.elf);
	close(fd);
	return result;
}

/* ---- the list ---------------------------------------------------------------------------------- */

static int read_at(int memory, uint64_t address, void *data, size_t bytes)
{
	return pread(memory, data, bytes, (off_t)address) == (ssize_t)bytes ? 0 : -1;
}

static uint64_t auxiliary(pid_t pid, uint64_t type)
{
	static union {
		char bytes[8192];
		Elf64_auxv_t entries[8192 / sizeof(Elf64_auxv_t)];
	} vector;
	const size_t count = tool_proc_read(pid, "auxv", vector.bytes, sizeof(vector)) /
			     sizeof(vector.entries[0]);

	for (size_t i = 0; i < count; i++)
		if (vector.entries[i].a_type == type)
			return vector.entries[i].a_un.a_val;
	return 0;
}

/* Reads where the dynamic linker keeps its list from the program's dynamic section. Returns 0 if there
 * is none. */
static uint64_t list_of(pid_t pid, int memory, const struct tool_attach_module *program)
{
	const uint64_t headers = auxiliary(pid, AT_PHDR);
	const uint64_t count = auxiliary(pid, AT_PHNUM);
	uint64_t dynamic = 0;
	struct r_debug list = {.r_map = NULL};
	Elf64_Phdr segment;
	Elf64_Dyn entry = {.d_tag = DT_NULL};

	for (uint64_t i = 0; i < count; i++)
		if (read_at(memory, headers + i * sizeof(segment), &segment, sizeof(segment)) ==
			    0 &&
		    segment.p_type == PT_DYNAMIC)
			dynamic = segment.p_vaddr + program->bias;
	if (dynamic == 0)
		return 0;
	do {
		if (read_at(memory, dynamic, &entry, sizeof(entry)) != 0)
			return 0;
		dynamic += sizeof(entry);
	} while (entry.d_tag != DT_NULL && entry.d_tag != DT_DEBUG);
	if (entry.d_tag != DT_DEBUG || entry.d_un.d_ptr == 0 ||
	    read_at(memory, entry.d_un.d_ptr, &list, sizeof(list)) != 0)
		return 0;
	return (uintptr_t)list.r_map;
}

static int search_list(int memory, const struct tool_attach_space *space, uint64_t at,
		       tool_attach_take *take, void *context)
{
	struct link_map object;
	int result = 0;

	for (int i = 0; at != 0 && i < OBJECTS_MOST && result == 0; i++) {
		const struct tool_attach_module *module;

		if (read_at(memory, at, &object, sizeof(object)) != 0)
			break;
		module = tool_attach_space_module(space, (uintptr_t)object.l_ld);
		if (module != NULL)
			result = take_symbols(module, SHT_DYNSYM, take, context);
		at = (uintptr_t)object.l_next;
	}
	return result;
}

int tool_attach_objects_search(pid_t pid, const struct tool_attach_space *space,
			       tool_attach_take *take, void *context)
{
	const struct tool_attach_module *program =
		tool_attach_space_module(space, auxiliary(pid, AT_ENTRY));
	char path[64];
	uint64_t list;
	int memory;
	int result;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	elf_version(EV_CURRENT);
	if (memory < 0 || program == NULL) {
		if (memory >= 0)
			close(memory);
		return 0;
	}
	list = list_of(pid, memory, program);
	result = list != 0 ? search_list(memory, space, list, take, context)
			   : take_symbols(program, SHT_SYMTAB, take, context);
	close(memory);
	return result;
}
