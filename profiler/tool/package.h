/* SPDX-License-Identifier: MIT
 *
 * Finds the Debian package with the symbols of a file.
 */
#ifndef INCSTACK_TOOL_PACKAGE_H
#define INCSTACK_TOOL_PACKAGE_H

#include <stddef.h>

enum { TOOL_PACKAGE_MOST = 128 };

/* Writes the name of the package, without a zero byte at the end. Returns its length; 0: no package is known. */
size_t tool_package_find(const char *path, char name[TOOL_PACKAGE_MOST]);

#endif
