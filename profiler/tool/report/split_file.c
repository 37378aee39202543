/* SPDX-License-Identifier: MIT
 *
 * Opens the files of split debug information. libdw opens them itself, and has no function that takes an open
 * file. In the jail nothing can be opened. So the tool has its own open(), which the dynamic linker gives to libdw, too.
 */
#include "split_file.h"

#include <linux/fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tool/files.h"

static bool is_wanted;

void tool_split_files(bool are_wanted)
{
	is_wanted = are_wanted;
}

/* The headers may have made a function or a macro of the name. */
__attribute__((used, visibility("default"))) int tool_open(const char *path, int flags,
							   ...) __asm__("open");

int tool_open(const char *path, int flags, ...)
{
	unsigned mode = 0;

	if (is_wanted)
		return tool_files_module(path);
	if (flags & (O_CREAT | __O_TMPFILE)) {
		va_list rest;

		va_start(rest, flags);
		mode = va_arg(rest, unsigned);
		va_end(rest);
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
