/* SPDX-License-Identifier: MIT
 *
 * The end of the standard output. At exit, libc would lose what it cannot write without a word.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "printed.h"

int tool_printed(int status)
{
	const bool has_failed = ferror(stdout) != 0;

	if (fflush(stdout) == 0 && !has_failed)
		return status;
	fprintf(stderr, "incstack: cannot write to the standard output%s%s\n",
		has_failed ? "" : ": ", has_failed ? "" : strerror(errno));
	return status == 0 ? 1 : status;
}
