/* SPDX-License-Identifier: MIT
 *
 * Whether a program can be profiled, said before it is started: a program into which
 * the loader preloads nothing would run and leave an empty profile.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* asprintf */
#endif
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heap.h"

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

/* Whether the dynamic loader runs it, without which nothing can be preloaded. A
 * script is run by an interpreter that is checked when it starts: yes. */
static int is_dynamic(int fd)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return 1;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
		return 0;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		const off_t at = (off_t)(header.e_phoff + i * sizeof(segment));

		if (pread(fd, &segment, sizeof(segment), at) == (ssize_t)sizeof(segment) &&
		    segment.p_type == PT_INTERP)
			return 1;
	}
	return 0;
}

static const char *refuse_reason(const char *path)
{
	struct stat status;
	const char *reason = NULL;
	int fd;

	if (stat(path, &status) != 0)
		return "it cannot be read";
	if (!S_ISREG(status.st_mode) || access(path, X_OK) != 0)
		return "it is not an executable file; see chmod +x";
	if (status.st_mode & (S_ISUID | S_ISGID))
		return "it is set-uid or set-gid, and the loader preloads nothing into such; "
		       "profile a copy without that bit";
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL; /* executable but unreadable: try */
	if (!is_dynamic(fd))
		reason = "it is static or not for x86-64; link it dynamically";
	close(fd);
	return reason;
}

int tool_heap_check_program(const char *program)
{
	char path[PATH_MAX];
	const char *reason;

	if (!find_in_path(program, path)) {
		fprintf(stderr, "incstack: %s: no such program; give its path\n", program);
		return TOOL_STATUS_NOT_FOUND;
	}
	reason = refuse_reason(path);
	if (reason == NULL)
		return 0;
	fprintf(stderr, "incstack: cannot profile %s: %s\n", path, reason);
	return TOOL_STATUS_CANNOT_RUN;
}
