/* SPDX-License-Identifier: MIT
 *
 * Shortens the names of C++ and Rust functions for tables, in which the names stand below each other.
 */
#ifndef INCSTACK_TOOL_ELIDE_H
#define INCSTACK_TOOL_ELIDE_H

#include <stddef.h>

/* Returns the name in at most `columns` bytes: without inner arguments, f<...>(...), and where they do not help,
 * without its start. If another one of the names would look equal, what lies before their first difference is
 * left out instead, and the text may be longer. Null: there is no memory. The caller frees it. */
char *tool_elide(const char *name, const char *const *others, size_t count, size_t columns);

#endif
