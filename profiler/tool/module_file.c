/* SPDX-License-Identifier: MIT
 *
 * Compares files of modules with what was recorded. Between the recording and the report
 * a file may have been rebuilt, upgraded or removed, and in another mount namespace its path is another
 * file. Names from another build look right and are wrong.
 */
#include "module_file.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/file.h"
#include "elf/elf_layout.h"

enum { SEGMENTS = 64 };

/* An open file and its program headers. */
struct module_file {
	struct incstack__elf_file elf;
	uint64_t size;
	Elf64_Phdr segments[SEGMENTS];
};

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool is_within(const struct module_file *file, uint64_t offset, uint64_t bytes)
{
	return offset <= file->size && bytes <= file->size - offset;
}

/* Reads the headers. Returns false if the file is no module of this architecture, or is cut off. */
static bool read_headers(struct module_file *file)
{
	const Elf64_Ehdr *header = &file->elf.header;
	struct stat status;

	if (fstat(file->elf.fd, &status) != 0 || !S_ISREG(status.st_mode) ||
	    !incstack__elf_file_open(&file->elf) || !incstack__elf_file_is_x86_64(&file->elf))
		return false;
	file->size = (uint64_t)status.st_size;
	if (header->e_phnum > SEGMENTS ||
	    !is_within(file, header->e_shoff, (uint64_t)header->e_shnum * header->e_shentsize) ||
	    !incstack__elf_file_segments(&file->elf, 0, header->e_phnum, file->segments))
		return false;
	for (unsigned i = 0; i < header->e_phnum; i++)
		if (file->segments[i].p_type == PT_LOAD &&
		    !is_within(file, file->segments[i].p_offset, file->segments[i].p_filesz))
			return false;
	return true;
}

static bool copy(const void *context, uint64_t address, void *to, size_t bytes)
{
	const struct module_file *file = context;
	const Elf64_Phdr *s =
		incstack__elf_segment_of(file->segments, file->elf.header.e_phnum, address, bytes);

	return s != NULL && read_at(file->elf.fd, to, bytes, s->p_offset + (address - s->p_vaddr));
}

int tool_module_file_identify(int fd, struct incstack__identity *identity)
{
	struct module_file file = {.elf = {.read = read_at, .fd = fd}};
	struct incstack__identity_source source = {
		.segments = file.segments, .copy = copy, .context = &file};

	*identity = (struct incstack__identity){0};
	if (!read_headers(&file))
		return -1;
	source.count = file.elf.header.e_phnum;
	if (!incstack__identity_build_id(&source, identity))
		(void)incstack__identity_content(&source, identity);
	return 0;
}

const char *tool_module_file_doubt(const struct incstack__tracefile_module_info *info, int fd)
{
	struct incstack__identity identity;

	if (tool_module_file_identify(fd, &identity) != 0)
		return "is no longer a complete program or library";
	if (info->identity.kind == INCSTACK__IDENTITY_NONE)
		return "could not be read when it was recorded";
	if (!incstack__identity_same(&info->identity, &identity))
		return "is not the build that was recorded";
	return NULL;
}
