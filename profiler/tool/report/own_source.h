/* SPDX-License-Identifier: MIT
 *
 * Tells the program's own source from that of libraries, whose lines say little to the reader.
 */
#ifndef INCSTACK_TOOL_OWN_SOURCE_H
#define INCSTACK_TOOL_OWN_SOURCE_H

#include <stdbool.h>

/* Whether a source file is neither unknown nor a library's, by its path. */
bool tool_source_is_own(const char *file);

#endif
