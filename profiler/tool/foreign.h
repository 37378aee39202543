/* SPDX-License-Identifier: MIT
 *
 * Opens files whose name, or whose content, somebody else chooses: a trace file names modules, a process
 * maps files, and anybody may write into a shared directory.
 */
#ifndef INCSTACK_TOOL_FOREIGN_H
#define INCSTACK_TOOL_FOREIGN_H

#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
	TOOL_FOREIGN_NO_LINK = 1 << 0, /* the name itself is no symbolic link */
	/* The file belongs to `owner`, to the user or to root, and nobody else may write it. */
	TOOL_FOREIGN_OWNED = 1 << 1,
	TOOL_FOREIGN_WRITE = 1 << 2, /* opened for reading and writing */
};

/* What the file must be. It is always a regular file. */
struct tool_foreign {
	unsigned flags;
	uid_t owner;         /* with TOOL_FOREIGN_OWNED */
	uint64_t bytes_most; /* 0: any size */
};

/* Opens a file, without waiting, and without opening anything that is no regular file: even to open a
 * device may have an effect. Returns a descriptor, or -1 and in *why a text for "NAME: WHY". `terms`
 * and `status` may be null. */
int tool_foreign_open(const char *name, const struct tool_foreign *terms, struct stat *status,
		      const char **why);
/* Opens what a descriptor names that was opened with O_PATH, after the caller has checked it. Of the flags,
 * TOOL_FOREIGN_WRITE counts. Returns a descriptor, or -1 and sets errno. */
int tool_foreign_reopen(int place, unsigned flags);
/* The same as tool_foreign_open() as a stream for reading. Returns null if the file cannot be opened. */
FILE *tool_foreign_stream(const char *name, const struct tool_foreign *terms, struct stat *status,
			  const char **why);

#endif
