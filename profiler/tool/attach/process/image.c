/* SPDX-License-Identifier: MIT
 *
 * Describes an object as the process has it mapped. The file may be no object, or one that no loader
 * would take: a process can map anything. So each number in it is checked before it is used.
 */
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tool/module_file.h"
#include "ask.h"
#include "copy.h"
#include "image.h"

#define PAGE UINT64_C(4096)
#define SPAN_MOST (UINT64_C(1) << 34)

struct object {
	Elf64_Phdr segments[TOOL_ATTACH_PARTS];
	unsigned count;
	uint64_t low, high; /* of its loaded segments, as in the file */
	uint64_t copied;    /* the end of what the file has of them */
};

static uint64_t page_of(uint64_t address)
{
	return address & ~(PAGE - 1);
}

/* Adds the places of a segment. Returns non-zero if it has none: its numbers overflow. */
static int measure_segment(struct object *object, const Elf64_Phdr *s)
{
	uint64_t end;
	uint64_t end_in_file;
	uint64_t end_of_page;

	if (__builtin_add_overflow(s->p_vaddr, s->p_memsz, &end) ||
	    __builtin_add_overflow(end, PAGE - 1, &end_of_page) ||
	    __builtin_add_overflow(s->p_offset, s->p_filesz, &end_in_file) ||
	    end_in_file > INT64_MAX || s->p_filesz > s->p_memsz)
		return -1;
	if (page_of(s->p_vaddr) < object->low)
		object->low = page_of(s->p_vaddr);
	if (page_of(end_of_page) > object->high)
		object->high = page_of(end_of_page);
	if (s->p_vaddr + s->p_filesz > object->copied)
		object->copied = s->p_vaddr + s->p_filesz;
	return 0;
}

/* Returns non-zero if that is no object. */
static int measure(struct object *object)
{
	object->low = UINT64_MAX;
	object->high = object->copied = 0;
	for (unsigned i = 0; i < object->count; i++)
		if (object->segments[i].p_type == PT_LOAD &&
		    measure_segment(object, &object->segments[i]) != 0)
			return -1;
	return object->low < object->high && object->high - object->low <= SPAN_MOST &&
			       object->copied > object->low
		       ? 0
		       : -1;
}

/* Checks the header. Returns non-zero if it is not that of an object, or if there are too many
 * segments. */
static int take_header(struct object *object, const Elf64_Ehdr *header)
{
	object->count = header->e_phnum;
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
			       header->e_ident[EI_CLASS] == ELFCLASS64 &&
			       header->e_phnum <= TOOL_ATTACH_PARTS &&
			       header->e_phentsize == sizeof(Elf64_Phdr) &&
			       header->e_phoff <= INT64_MAX
		       ? 0
		       : -1;
}

static int read_object(int fd, struct object *object)
{
	Elf64_Ehdr header;
	size_t bytes;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    take_header(object, &header) != 0)
		return -1;
	bytes = object->count * sizeof(Elf64_Phdr);
	if (pread(fd, object->segments, bytes, (off_t)header.e_phoff) != (ssize_t)bytes)
		return -1;
	return measure(object);
}

/* Tells the copy what the file has, and where the unwind table is. */
static void describe(const struct object *object, struct tool_attach_copy *copy)
{
	copy->base = object->low;
	copy->span = object->high - object->low;
	for (unsigned i = 0; i < object->count; i++) {
		const Elf64_Phdr *s = &object->segments[i];
		const uint64_t at = s->p_vaddr - object->low;

		if (s->p_type == PT_LOAD && s->p_filesz > 0)
			copy->parts[copy->count++] = (struct tool_attach_part){
				at, at + s->p_filesz, s->p_offset, (s->p_flags & PF_X) != 0};
		if (s->p_type == PT_GNU_EH_FRAME && s->p_vaddr >= object->low && at < copy->size)
			copy->header = at;
	}
}

/* Finds the segment to which the mapping belongs, and so where the object was loaded. */
static int place_module(const struct tool_attach_copy *copy,
			const struct tool_attach_mapping *mapping,
			struct tool_attach_module *module)
{
	for (unsigned i = 0; i < copy->count; i++) {
		const struct tool_attach_part *part = &copy->parts[i];
		const uint64_t first = page_of(part->offset);
		const uint64_t before = page_of(part->low) + (mapping->offset - first);

		if (!part->is_code || mapping->offset < first ||
		    mapping->offset >= part->offset + (part->high - part->low) ||
		    before > mapping->low || before >= copy->span)
			continue;
		module->low = mapping->low - before;
		module->high = module->low + copy->span;
		module->bias = module->low - copy->base;
		return 0;
	}
	return -1;
}

/* The vDSO of each process is the same, so ours is copied. */
static struct tool_attach_copy *copy_vdso(struct tool_attach_copies *copies)
{
	const uintptr_t at = getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)at;
	struct tool_attach_copy *copy;
	struct object object;

	if (at == 0 || take_header(&object, header) != 0)
		return NULL;
	memcpy(object.segments, (const char *)header + header->e_phoff,
	       object.count * sizeof(Elf64_Phdr));
	if (measure(&object) != 0 || object.low != 0)
		return NULL;
	copy = tool_attach_copy_of_memory(copies, header, object.copied);
	if (copy)
		describe(&object, copy);
	return copy;
}

static struct tool_attach_copy *copy_file(struct tool_attach_copies *copies,
					  const struct tool_attach_mapping *mapping, char **path)
{
	const int fd = tool_attach_ask_file(mapping, path);
	struct tool_attach_copy *copy = NULL;
	struct object object;

	if (fd < 0)
		return NULL;
	if (read_object(fd, &object) == 0)
		copy = tool_attach_copy_new(copies, mapping, fd, object.copied - object.low);
	else
		close(fd);
	if (copy) {
		describe(&object, copy);
		tool_module_file_identify(fd, &copy->identity);
		copy->path = strdup(*path ? *path : mapping->path);
	}
	return copy;
}

/* A process may map a file many times. */
static struct tool_attach_copy *copy_again(const struct tool_attach_copies *copies,
					   const struct tool_attach_mapping *mapping, char **path)
{
	struct tool_attach_copy *last = copies->last;

	if (!last || !last->path || last->mapping.inode != mapping->inode ||
	    last->mapping.device != mapping->device ||
	    strcmp(last->mapping.path, mapping->path) != 0)
		return NULL;
	*path = strdup(last->path);
	last->users++;
	return last;
}

static struct tool_attach_copy *copy_of(struct tool_attach_copies *copies,
					const struct tool_attach_mapping *mapping, char **path)
{
	struct tool_attach_copy *copy;

	if (strcmp(mapping->path, "[vdso]") == 0)
		return copy_vdso(copies);
	copy = copy_again(copies, mapping, path);
	return copy ? copy : copy_file(copies, mapping, path);
}

int tool_attach_image_open(struct tool_attach_copies *copies,
			   const struct tool_attach_mapping *mapping,
			   struct tool_attach_module *module)
{
	*module = (struct tool_attach_module){
		.low = mapping->low,
		.high = mapping->high,
		.bias = mapping->low - mapping->offset,
		.device = mapping->device,
		.inode = mapping->inode,
		.origin = mapping->low - mapping->offset,
	};
	module->copy = copy_of(copies, mapping, &module->path);
	if (module->copy)
		module->identity = module->copy->identity;
	if (module->copy && place_module(module->copy, mapping, module) != 0) {
		tool_attach_copy_free(module->copy);
		module->copy = NULL;
	}
	if (!module->path)
		module->path = strdup(mapping->path);
	if (module->path)
		return 0;
	tool_attach_image_close(module);
	return -1;
}

void tool_attach_image_close(struct tool_attach_module *module)
{
	tool_attach_copy_free(module->copy);
	free(module->path);
	module->copy = NULL;
	module->path = NULL;
}
