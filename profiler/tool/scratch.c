/* SPDX-License-Identifier: MIT
 *
 * tmpfile, instead of libc's, which opens a file and so cannot work in the jail. The profile library
 * calls it for what it has to read twice, or writes in another order than it comes.
 */
#include <stdio.h>

#include "files.h"

FILE *tmpfile(void)
{
	const int fd = tool_files_scratch();

	return fd < 0 ? NULL : fdopen(fd, "w+");
}
