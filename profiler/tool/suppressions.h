/* SPDX-License-Identifier: MIT
 *
 * Files of suppressions, in the form that LeakSanitizer and heaptrack share: lines of leak:PATTERN, and comments
 * after #.
 */
#ifndef INCSTACK_TOOL_SUPPRESSIONS_H
#define INCSTACK_TOOL_SUPPRESSIONS_H

#include <stddef.h>

/* Patterns for whole texts. */
struct tool_suppressions {
	char **patterns;
	size_t count, room;
};

/* Adds the suppressions of a file. Returns an exit status, after a message with the line. */
int tool_suppressions_read(struct tool_suppressions *list, const char *path);
void tool_suppressions_free(struct tool_suppressions *list);

#endif
