/* SPDX-License-Identifier: MIT
 *
 * Checks before the start whether a program can be profiled. If the dynamic loader preloads
 * nothing into it, it would run and leave an empty profile.
 */
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/file.h"
#include "tool/foreign.h"
#include "tool/names.h"
#include "record.h"

static int find_in_path(const char *program, char path[PATH_MAX])
{
	const char *at = getenv("PATH");

	if (strchr(program, '/') != NULL || at == NULL) {
		snprintf(path, PATH_MAX, "%s", program);
		return access(path, F_OK) == 0;
	}
	for (; at != NULL; at = strchr(at, ':') != NULL ? strchr(at, ':') + 1 : NULL) {
		const int length = (int)strcspn(at, ":");
		struct stat status;

		snprintf(path, PATH_MAX, "%.*s/%s", length, length > 0 ? at : ".", program);
		if (access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode))
			return 1;
	}
	return 0;
}

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Whether glibc's loader runs the program; otherwise the recorder cannot be loaded. Returns the reason, or
 * null. */
static const char *loader_reason(const struct incstack__elf_file *file)
{
	char loader[PATH_MAX];
	Elf64_Phdr segment;
	ssize_t got;

	if (!incstack__elf_file_is_x86_64(file))
		return "it is not for x86-64";
	for (unsigned i = 0; i < file->header.e_phnum; i++) {
		if (!incstack__elf_file_segments(file, i, 1, &segment) ||
		    segment.p_type != PT_INTERP)
			continue;
		got = pread(file->fd, loader, sizeof(loader) - 1, (off_t)segment.p_offset);
		loader[got > 0 ? got : 0] = '\0';
		if (strstr(loader, "/ld-musl") != NULL || strstr(loader, "/linker64") != NULL)
			return "its C library is not glibc, which the recorder needs; link it with "
			       "glibc";
		return NULL;
	}
	return "it is static; link it dynamically";
}

static const char *mode_reason(const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0)
		return "it cannot be read";
	if (!S_ISREG(status.st_mode) || access(path, X_OK) != 0)
		return "it is not an executable file; see chmod +x";
	if (status.st_mode & (S_ISUID | S_ISGID))
		return "it is set-uid or set-gid, and the loader preloads nothing into such "
		       "programs; "
		       "profile a copy without that bit";
	return NULL;
}

bool tool_record_is_unloadable(const char *program)
{
	struct incstack__elf_file file = {.read = read_at, .fd = -1};
	char path[PATH_MAX];
	const char *unread;
	bool is_unloadable;

	if (find_in_path(program, path) && mode_reason(path) == NULL)
		file.fd = tool_foreign_open(path, NULL, NULL, &unread);
	if (file.fd < 0)
		return false;
	is_unloadable = incstack__elf_file_open(&file) && incstack__elf_file_is_x86_64(&file) &&
			loader_reason(&file) != NULL;
	close(file.fd);
	return is_unloadable;
}

/* Replaces the path of a script by that of its interpreter. Returns whether it is a script. */
static int follow_script(int fd, char path[PATH_MAX])
{
	char line[PATH_MAX];
	const ssize_t got = pread(fd, line, sizeof(line) - 1, 0);
	const char *at = line + 2;

	line[got > 0 ? got : 0] = '\0';
	if (strncmp(line, "#!", 2) != 0)
		return 0;
	at += strspn(at, " \t");
	snprintf(path, PATH_MAX, "%.*s", (int)strcspn(at, " \t\n"), at);
	return 1;
}

/* Returns the sanitizer that a name stands for, of a needed library or a symbol; or null. */
static const char *sanitizer_named(const char *name)
{
	if (strncmp(name, "libasan.so", 10) == 0 || strcmp(name, "__asan_init") == 0)
		return "it was built with AddressSanitizer, whose own malloc must be the only one; "
		       "build it without -fsanitize=address";
	if (strncmp(name, "libtsan.so", 10) == 0 || strcmp(name, "__tsan_init") == 0)
		return "it was built with ThreadSanitizer, whose own malloc must be the only one; "
		       "build it without -fsanitize=thread";
	return NULL;
}

static const char *sanitizer_in_needed(Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const char *reason = NULL;
	GElf_Dyn entry;

	for (int i = 0; reason == NULL && gelf_getdyn(data, i, &entry) != NULL; i++) {
		const char *name = entry.d_tag == DT_NEEDED
					   ? elf_strptr(elf, header->sh_link, entry.d_un.d_val)
					   : NULL;

		if (name != NULL)
			reason = sanitizer_named(name);
	}
	return reason;
}

static const char *sanitizer_in_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const char *reason = NULL;
	GElf_Sym symbol;

	for (int i = 0; reason == NULL && gelf_getsym(data, i, &symbol) != NULL; i++) {
		const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);

		if (name != NULL && symbol.st_shndx != SHN_UNDEF)
			reason = sanitizer_named(name);
	}
	return reason;
}

/* Finds a sanitizer. gcc links it as a library; clang links it into the program, which exports its
 * symbols. */
static const char *sanitizer_of(int fd)
{
	const char *reason = NULL;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	while (reason == NULL && (section = elf_nextscn(elf, section)) != NULL) {
		if (gelf_getshdr(section, &header) == NULL)
			continue;
		if (header.sh_type == SHT_DYNAMIC)
			reason = sanitizer_in_needed(elf, section, &header);
		else if (header.sh_type == SHT_DYNSYM)
			reason = sanitizer_in_symbols(elf, section, &header);
	}
	elf_end(elf);
	return reason;
}

static const char *elf_reason(int fd)
{
	struct incstack__elf_file file = {.read = read_at, .fd = fd};
	const char *reason;

	if (!incstack__elf_file_open(&file))
		return NULL; /* no program; the kernel says what is wrong */
	reason = loader_reason(&file);
	return reason != NULL ? reason : sanitizer_of(fd);
}

/* If the program is a script, `path` becomes that of its interpreter. The kernel reports an interpreter
 * that does not exist. */
static const char *refuse_reason(char path[PATH_MAX])
{
	enum { INTERPRETERS = 5 }; /* as many as the kernel follows */
	const char *reason = mode_reason(path);
	int is_script = 1;

	for (int i = 0; i < INTERPRETERS && reason == NULL && is_script; i++) {
		const char *unread;
		const int fd = tool_foreign_open(path, NULL, NULL, &unread);

		if (fd < 0)
			return NULL; /* it may be executable though it cannot be read */
		is_script = follow_script(fd, path);
		if (is_script)
			reason = access(path, X_OK) == 0 ? mode_reason(path) : NULL;
		else
			reason = elf_reason(fd);
		close(fd);
	}
	return reason;
}

int tool_record_check_program(const char *program)
{
	char path[PATH_MAX];
	const char *reason;

	if (!find_in_path(program, path)) {
		fprintf(stderr, "incstack: %s: no such program; give its path\n",
			tool_name(program));
		return TOOL_STATUS_NOT_FOUND;
	}
	reason = refuse_reason(path);
	if (reason == NULL)
		return 0;
	fprintf(stderr, "incstack: cannot profile %s: %s\n", tool_name(path), reason);
	return TOOL_STATUS_CANNOT_RUN;
}
