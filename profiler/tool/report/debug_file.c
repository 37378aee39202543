/* SPDX-License-Identifier: MIT
 *
 * A stripped module names the file with its symbols, and its checksum. The file is looked for beside
 * the module. A link can be made to the file of another build, so the build-ids are compared, too.
 */
#include "debug_file.h"

#include <elfutils/libdwelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tool/files.h"

/* The whole file is read for its checksum. The largest ones of Debian have less than 2 GiB. */
static const off_t SIZE_MOST = (off_t)4 << 30;

static bool has_crc(int fd, GElf_Word crc)
{
	struct stat status;
	size_t size;
	void *data;
	bool has;

	if (fstat(fd, &status) != 0 || status.st_size <= 0 || status.st_size > SIZE_MOST)
		return false;
	size = (size_t)status.st_size;
	data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return false;
	has = crc32_z(0, data, size) == crc;
	munmap(data, size);
	return has;
}

/* Whether the file is not known to be that of another build. */
static bool has_build_id(int fd, Dwfl_Module *module)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	const unsigned char *wanted = NULL;
	const void *found = NULL;
	GElf_Addr address;
	const int length = dwfl_module_build_id(module, &wanted, &address);
	const ssize_t got = elf != NULL ? dwelf_elf_gnu_build_id(elf, &found) : 0;
	const bool differs =
		length > 0 && got > 0 && (got != length || memcmp(found, wanted, (size_t)got) != 0);

	elf_end(elf);
	return !differs;
}

static int by_link(Dwfl_Module *module, const char *file, const char *link, GElf_Word crc)
{
	const char *slash = file != NULL ? strrchr(file, '/') : NULL;
	char *path = NULL;
	int fd = -1;

	if (slash == NULL || link == NULL || strchr(link, '/') != NULL)
		return -1;
	if (asprintf(&path, "%.*s/%s", (int)(slash - file), file, link) < 0)
		return -1;
	fd = tool_files_module(path);
	free(path);
	if (fd >= 0 && !(has_crc(fd, crc) && has_build_id(fd, module))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int tool_debug_file_find(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)data;
	(void)name;
	(void)base;
	(void)found;
	return by_link(module, file, link, crc);
}
