/* SPDX-License-Identifier: MIT
 *
 * The symbols of a stripped module are in another file, which has the module's build-id, and which the module
 * may name, with its checksum. A link can be made to the file of another build, so the build-ids are compared,
 * too. The tool dwz moves what several of these files have in common to one more file.
 */
#include "debug_file.h"

#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tool/files.h"

#define DEBUG_ROOT "/usr/lib/debug"

/* The whole file is read for its checksum. The largest ones of Debian have less than 2 GiB. */
static const off_t SIZE_MOST = (off_t)4 << 30;

enum { ID_MOST = 64 };

struct id {
	const unsigned char *bytes;
	size_t length; /* 0: there is none */
};

/* ---- is it the right one? ------------------------------------------------------------------- */

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

/* How the build-id of a file compares with the wanted one. A file that was cut off is another one. */
enum same { SAME, NONE, OTHER };

/* The table of sections lies at the end of a file. */
static bool is_cut_off(Elf *elf)
{
	GElf_Ehdr header;
	size_t size = 0;

	(void)elf_rawfile(elf, &size);
	return gelf_getehdr(elf, &header) == NULL || header.e_shoff == 0 || header.e_shoff > size ||
	       (size - header.e_shoff) / sizeof(Elf64_Shdr) < header.e_shnum;
}

static enum same compare_id(int fd, const struct id *wanted)
{
	Elf *elf = elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	const void *found = NULL;
	const ssize_t length = elf != NULL ? dwelf_elf_gnu_build_id(elf, &found) : 0;
	enum same same = NONE;

	if (length > 0 && wanted->length > 0)
		same = (size_t)length == wanted->length &&
				       memcmp(found, wanted->bytes, wanted->length) == 0
			       ? SAME
			       : OTHER;
	if (elf == NULL || is_cut_off(elf))
		same = OTHER;
	elf_end(elf);
	return same;
}

/* Remembers the file: it is the right one, or it is refused. Returns the descriptor or -1. */
static int take(struct tool_debug_file *files, char *path, int fd, bool is_right)
{
	char **place = is_right ? &files->path : &files->refused;

	free(*place);
	*place = path;
	if (is_right)
		return fd;
	close(fd);
	return -1;
}

/* ---- where may it be? ----------------------------------------------------------------------- */

/* Returns a path in the folder of build-ids, or null. */
static char *path_of(const struct id *id)
{
	char text[2 * ID_MOST + 1] = "";
	char *path = NULL;

	if (id->length < 2 || id->length > ID_MOST)
		return NULL;
	for (size_t i = 0; i < id->length; i++)
		snprintf(text + 2 * i, 3, "%02x", id->bytes[i]);
	if (asprintf(&path, DEBUG_ROOT "/.build-id/%.2s/%s.debug", text, text + 2) < 0)
		return NULL;
	return path;
}

static int by_id(struct tool_debug_file *files, const struct id *id)
{
	char *path = path_of(id);
	const int fd = path != NULL ? tool_files_module(path) : -1;

	if (fd >= 0)
		return take(files, path, fd, compare_id(fd, id) == SAME);
	free(path);
	return -1;
}

/* Debian's files with symbols have build-ids; a file by a link may have none. */
static int by_link(struct tool_debug_file *files, const struct id *id, char *path, GElf_Word crc)
{
	const int fd = path != NULL ? tool_files_module(path) : -1;

	if (fd >= 0)
		return take(files, path, fd, has_crc(fd, crc) && compare_id(fd, id) != OTHER);
	free(path);
	return -1;
}

static int by_links(struct tool_debug_file *files, const struct id *id, const char *file,
		    const char *link, GElf_Word crc)
{
	static const char *const places[][2] = {{"", ""}, {"", "/.debug"}, {DEBUG_ROOT, ""}};
	const char *slash = file != NULL ? strrchr(file, '/') : NULL;
	int fd = -1;

	if (slash == NULL || link == NULL || strchr(link, '/') != NULL)
		return -1;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && fd < 0; i++) {
		char *path = NULL;

		if (asprintf(&path, "%s%.*s%s/%s", places[i][0], (int)(slash - file), file,
			     places[i][1], link) >= 0)
			fd = by_link(files, id, path, crc);
	}
	return fd;
}

static int by_server(const struct id *id)
{
	int fd = id->length > 0 ? tool_files_debuginfod(id->bytes, id->length) : -1;

	if (fd >= 0 && compare_id(fd, id) != SAME) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int tool_debug_file_find(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **found)
{
	struct tool_debug_file *files = *data;
	struct id id = {NULL, 0};
	GElf_Addr address;
	const int length = dwfl_module_build_id(module, &id.bytes, &address);
	int fd;

	(void)name;
	(void)base;
	(void)found;
	id.length = length > 0 ? (size_t)length : 0;
	fd = by_id(files, &id);
	if (fd < 0)
		fd = by_links(files, &id, file, link, crc);
	return fd >= 0 ? fd : by_server(&id);
}

int tool_debug_file_open(struct tool_debug_file *files, const unsigned char *bytes, size_t length)
{
	const struct id id = {bytes, length};
	const int fd = by_id(files, &id);

	return fd >= 0 ? fd : by_server(&id);
}

/* ---- the shared file ------------------------------------------------------------------------ */

/* Opens the shared file by its name, which may be relative to the file that names it. */
static int open_named(const char *name, const char *path)
{
	const char *slash = path != NULL ? strrchr(path, '/') : NULL;
	char *full = NULL;
	int fd;

	if (name[0] == '/')
		return tool_files_module(name);
	if (slash == NULL || asprintf(&full, "%.*s/%s", (int)(slash - path), path, name) < 0)
		return -1;
	fd = tool_files_module(full);
	free(full);
	return fd;
}

static int open_shared(const char *name, const char *path, const struct id *id)
{
	struct tool_debug_file other = {0};
	int fd = open_named(name, path);

	if (fd >= 0 && compare_id(fd, id) != SAME) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		fd = tool_debug_file_open(&other, id->bytes, id->length);
	tool_debug_file_free(&other);
	return fd;
}

void tool_debug_file_share(struct tool_debug_file *files, Dwarf *dwarf, const char *path)
{
	const void *bytes = NULL;
	const char *name = NULL;
	const ssize_t length = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &bytes);
	const struct id id = {bytes, length > 0 ? (size_t)length : 0};
	int fd;

	if (length <= 0)
		return;
	fd = open_shared(name, files->path != NULL ? files->path : path, &id);
	files->alt = fd >= 0 ? dwarf_begin(fd, DWARF_C_READ) : NULL;
	if (files->alt != NULL) {
		files->alt_file = fd;
		dwarf_setalt(dwarf, files->alt);
		return;
	}
	if (fd >= 0)
		close(fd);
	files->shared = strdup(name);
}

void tool_debug_file_free(struct tool_debug_file *files)
{
	if (files->alt != NULL) {
		dwarf_end(files->alt);
		close(files->alt_file);
	}
	free(files->path);
	free(files->refused);
	free(files->shared);
}
