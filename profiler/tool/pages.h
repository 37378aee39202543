/* SPDX-License-Identifier: MIT
 *
 * Looks at the pages of another process.
 */
#ifndef INCSTACK_TOOL_PAGES_H
#define INCSTACK_TOOL_PAGES_H

#include "tracefile/moment.h"

/* Open files of /proc/PID; -1: it cannot be opened. */
struct tool_pages_files {
	int maps, pagemap, rollup;
};

/* Returns a block with the times in which it was made, or null: there is no such process, it may not be looked at, or there is
 * no memory. The caller frees *memory in each case. */
struct incstack__moment_block *tool_pages_look(const struct tool_pages_files *files, void **memory);

#endif
