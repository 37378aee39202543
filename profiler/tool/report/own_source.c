/* SPDX-License-Identifier: MIT
 *
 * Where libraries have their sources: headers of the system, and the folders in which distributions and compilers
 * were built.
 */
#include "own_source.h"

#include <stddef.h>
#include <string.h>

bool tool_source_is_own(const char *file)
{
	static const char *const theirs[] = {"/usr/", "/build/", "/rustc/", "./", "../", "<"};

	for (size_t i = 0; file != NULL && i < sizeof(theirs) / sizeof(theirs[0]); i++)
		if (strncmp(file, theirs[i], strlen(theirs[i])) == 0)
			return false;
	return file != NULL;
}
