/* SPDX-License-Identifier: MIT
 *
 * A stripped module names the file with its symbols by its build-id, which packages of debug symbols
 * have in /usr/lib/debug, and by a name and a checksum, for a file beside the module.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* asprintf */
#endif
#include "debug_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tool/files.h"

enum { BUILD_ID_MOST = 64 };

static int by_build_id(Dwfl_Module *module)
{
	char text[2 * BUILD_ID_MOST + 1];
	const unsigned char *id = NULL;
	GElf_Addr address;
	const int bytes = dwfl_module_build_id(module, &id, &address);

	if (bytes <= 0 || bytes > BUILD_ID_MOST)
		return -1;
	for (int i = 0; i < bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	return tool_files_debug(text);
}

static bool has_crc(int fd, GElf_Word crc)
{
	struct stat status;
	size_t size;
	void *data;
	bool has;

	if (fstat(fd, &status) != 0 || status.st_size <= 0)
		return false;
	size = (size_t)status.st_size;
	data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return false;
	has = crc32_z(0, data, size) == crc;
	munmap(data, size);
	return has;
}

static int by_link(const char *file, const char *link, GElf_Word crc)
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
	if (fd >= 0 && !has_crc(fd, crc)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int tool_debug_file_find(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **found)
{
	const int fd = by_build_id(module);

	(void)data;
	(void)name;
	(void)base;
	(void)found;
	return fd >= 0 ? fd : by_link(file, link, crc);
}
