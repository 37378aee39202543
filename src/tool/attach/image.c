/* SPDX-License-Identifier: MIT
 *
 * Maps the file of an object as the process has it mapped, so that the object's unwind table and code
 * can be read here. The process may see other files under the same name: it may be in another mount
 * namespace, and the file may have been replaced. So the file must have the inode that the kernel
 * reports for the mapping.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* asprintf */
#endif
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tool/module_file.h"
#include "attach.h"

#define PAGE UINT64_C(4096)
#define SPAN_MOST (UINT64_C(1) << 34)

enum { SEGMENTS = 64 };

struct object {
	Elf64_Phdr segments[SEGMENTS];
	unsigned count;
	uint64_t low, high; /* of its loaded segments, as in the file */
};

static uint64_t page_of(uint64_t address)
{
	return address & ~(PAGE - 1);
}

static uint64_t page_behind(uint64_t address)
{
	return page_of(address + PAGE - 1);
}

/* Whether the descriptor is that of the mapped file. Some file systems have another device number for
 * their files than for their mappings (btrfs), so only the inode must be the same there. */
static int is_mapped_file(int fd, const struct tool_attach_mapping *mapping)
{
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	       status.st_ino == mapping->inode &&
	       (status.st_dev == mapping->device || major(mapping->device) == 0);
}

/* Opens the file under one of its names: as the tool sees it, as the process sees it, or by the
 * mapping, which also works if it was deleted, but needs rights. Returns its name in *path. */
static int open_file(pid_t pid, const struct tool_attach_mapping *mapping, char **path)
{
	char *names[3] = {NULL, NULL, NULL};
	int fd = -1;

	*path = NULL;
	names[0] = strdup(mapping->path);
	if (asprintf(&names[1], "/proc/%d/root%s", (int)pid, mapping->path) < 0)
		names[1] = NULL;
	if (asprintf(&names[2], "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, mapping->low,
		     mapping->high) < 0)
		names[2] = NULL;
	for (int i = 0; i < 3; i++) {
		if (fd < 0 && names[i] != NULL) {
			fd = open(names[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
			if (fd >= 0 && is_mapped_file(fd, mapping)) {
				*path = names[i];
				continue;
			}
			if (fd >= 0)
				close(fd);
			fd = -1;
		}
		free(names[i]);
	}
	return fd;
}

static void measure(struct object *object)
{
	object->low = UINT64_MAX;
	object->high = 0;
	for (unsigned i = 0; i < object->count; i++) {
		const Elf64_Phdr *s = &object->segments[i];

		if (s->p_type != PT_LOAD)
			continue;
		if (page_of(s->p_vaddr) < object->low)
			object->low = page_of(s->p_vaddr);
		if (page_behind(s->p_vaddr + s->p_memsz) > object->high)
			object->high = page_behind(s->p_vaddr + s->p_memsz);
	}
}

static int read_object(int fd, struct object *object)
{
	Elf64_Ehdr header;
	size_t bytes;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phnum > SEGMENTS ||
	    header.e_phentsize != sizeof(Elf64_Phdr))
		return -1;
	object->count = header.e_phnum;
	bytes = object->count * sizeof(Elf64_Phdr);
	if (pread(fd, object->segments, bytes, (off_t)header.e_phoff) != (ssize_t)bytes)
		return -1;
	measure(object);
	return object->low < object->high && object->high - object->low <= SPAN_MOST ? 0 : -1;
}

/* Finds the segment to which the mapping belongs, and so where the object was loaded. */
static int place_module(const struct object *object, const struct tool_attach_mapping *mapping,
			struct tool_attach_module *module)
{
	for (unsigned i = 0; i < object->count; i++) {
		const Elf64_Phdr *s = &object->segments[i];

		if (s->p_type != PT_LOAD || !(s->p_flags & PF_X) ||
		    mapping->offset < page_of(s->p_offset) ||
		    mapping->offset >= s->p_offset + s->p_filesz)
			continue;
		module->bias = mapping->low -
			       (page_of(s->p_vaddr) + mapping->offset - page_of(s->p_offset));
		module->low = module->bias + object->low;
		module->high = module->bias + object->high;
		return 0;
	}
	return -1;
}

/* Maps what the file has of a segment. Reading beyond the end of the file would end the tool. */
static int map_segment(int fd, const Elf64_Phdr *s, unsigned char *to)
{
	const uint64_t before = s->p_vaddr - page_of(s->p_vaddr);
	struct stat status;

	if (s->p_filesz == 0)
		return 0;
	if (s->p_filesz > s->p_memsz || fstat(fd, &status) != 0 ||
	    s->p_offset > (uint64_t)status.st_size ||
	    s->p_filesz > (uint64_t)status.st_size - s->p_offset)
		return -1;
	return mmap(to, s->p_filesz + before, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
		    (off_t)page_of(s->p_offset)) != MAP_FAILED
		       ? 0
		       : -1;
}

/* Makes the copy. Every page of it can be read, as the tables may lead to any of them. */
static int map_object(int fd, const struct object *object, struct tool_attach_module *module)
{
	const size_t span = object->high - object->low;
	unsigned char *memory =
		mmap(NULL, span, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return -1;
	module->local = (uintptr_t)memory;
	for (unsigned i = 0; i < object->count; i++) {
		const Elf64_Phdr *s = &object->segments[i];
		const uint64_t at = s->p_vaddr - object->low;

		if (s->p_type == PT_LOAD &&
		    map_segment(fd, s, memory + (page_of(s->p_vaddr) - object->low)) != 0)
			return -1;
		if (s->p_type == PT_GNU_EH_FRAME && at < span)
			module->header = module->local + at;
	}
	return 0;
}

/* The vDSO of each process is the same, so ours serves as the copy. */
static void take_vdso(struct tool_attach_module *module)
{
	const uintptr_t at = getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)at;
	struct object object;

	module->is_vdso = 1;
	if (at == 0 || header->e_phnum > SEGMENTS)
		return;
	object.count = header->e_phnum;
	memcpy(object.segments, (const char *)header + header->e_phoff,
	       object.count * sizeof(Elf64_Phdr));
	measure(&object);
	if (object.low != 0 || object.high != module->high - module->low)
		return;
	module->local = at;
	for (unsigned i = 0; i < object.count; i++)
		if (object.segments[i].p_type == PT_GNU_EH_FRAME)
			module->header = at + object.segments[i].p_vaddr;
}

static void take_file(pid_t pid, const struct tool_attach_mapping *mapping,
		      struct tool_attach_module *module)
{
	struct object object;
	const int fd = open_file(pid, mapping, &module->path);

	if (fd < 0)
		return;
	tool_module_file_identify(fd, &module->identity);
	if (read_object(fd, &object) == 0 && place_module(&object, mapping, module) == 0 &&
	    map_object(fd, &object, module) != 0)
		tool_attach_image_close(module);
	close(fd);
}

int tool_attach_image_open(pid_t pid, const struct tool_attach_mapping *mapping,
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
	if (strcmp(mapping->path, "[vdso]") == 0)
		take_vdso(module);
	else
		take_file(pid, mapping, module);
	if (module->path == NULL)
		module->path = strdup(mapping->path);
	return module->path == NULL;
}

void tool_attach_image_close(struct tool_attach_module *module)
{
	if (module->local != 0 && !module->is_vdso)
		munmap((void *)module->local, module->high - module->low);
	module->local = module->header = 0;
	free(module->path);
	module->path = NULL;
}
