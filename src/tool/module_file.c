/* SPDX-License-Identifier: MIT
 *
 * Compares files of modules with what was recorded. Between the recording and the report
 * a file may have been rebuilt, upgraded or removed, and in another mount namespace its path is another
 * file. Names from another build look right and are wrong.
 */
#include "module_file.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEGMENTS = 64 };

/* An open file and its program headers. */
struct module_file {
	int fd;
	uint64_t size;
	Elf64_Ehdr header;
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
	const Elf64_Ehdr *header = &file->header;
	struct stat status;

	if (fstat(file->fd, &status) != 0 || !S_ISREG(status.st_mode) ||
	    !read_at(file->fd, &file->header, sizeof(file->header), 0))
		return false;
	file->size = (uint64_t)status.st_size;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64 ||
	    header->e_phnum > SEGMENTS || header->e_phentsize != sizeof(Elf64_Phdr) ||
	    !is_within(file, header->e_shoff, (uint64_t)header->e_shnum * header->e_shentsize) ||
	    !read_at(file->fd, file->segments, header->e_phnum * sizeof(Elf64_Phdr),
		     header->e_phoff))
		return false;
	for (unsigned i = 0; i < header->e_phnum; i++)
		if (file->segments[i].p_type == PT_LOAD &&
		    !is_within(file, file->segments[i].p_offset, file->segments[i].p_filesz))
			return false;
	return true;
}

/* Copies from an address that the caller has found in a segment. */
static bool copy(const void *context, uint64_t address, void *to, size_t bytes)
{
	const struct module_file *file = context;

	for (unsigned i = 0; i < file->header.e_phnum; i++) {
		const Elf64_Phdr *s = &file->segments[i];

		if (s->p_type == PT_LOAD && address >= s->p_vaddr &&
		    address - s->p_vaddr < s->p_filesz &&
		    bytes <= s->p_filesz - (address - s->p_vaddr))
			return read_at(file->fd, to, bytes, s->p_offset + (address - s->p_vaddr));
	}
	return bytes == 0;
}

int tool_module_file_identify(int fd, struct incstack__identity *identity)
{
	struct module_file file = {.fd = fd};
	struct incstack__identity_source source = {
		.segments = file.segments, .copy = copy, .context = &file};

	*identity = (struct incstack__identity){0};
	if (!read_headers(&file))
		return -1;
	source.count = file.header.e_phnum;
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
