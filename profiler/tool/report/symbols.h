/* SPDX-License-Identifier: MIT
 *
 * Finds the names of functions for modules and addresses, in the files on disk.
 */
#ifndef INCSTACK_TOOL_SYMBOLS_H
#define INCSTACK_TOOL_SYMBOLS_H

#include <stdio.h>
#include <time.h>

#include "tracefile/read.h"

struct tool_symbols;

/* Loads the demangler. To be called before the jail, in which nothing can be loaded. */
void tool_symbols_prepare(void);

/* Creates the symbols. The reader must outlive them. *written is the time when its file was last written.
 * Returns null if there is no memory. */
struct tool_symbols *tool_symbols_open(const struct incstack__tracefile_reader *reader,
				       const struct timespec *written);
void tool_symbols_close(struct tool_symbols *symbols);

/* Prints a line for each file whose names were needed and could not be read, as it is not the one that
 * was recorded, or that was changed since and has the recorded build-id. Each line begins with `before`. */
void tool_symbols_tell(const struct tool_symbols *symbols, const char *before, FILE *out);

/* Returns the name of a code of the calling context tree: the function, else "module+0xoffset" with
 * the offset of the function's start, else the address. Never null; valid until close. Two codes
 * in one function share one pointer. */
const char *tool_symbols_name(struct tool_symbols *symbols, uint64_t code);
/* Returns the last component of the module's path, or "". */
const char *tool_symbols_module(struct tool_symbols *symbols, uint64_t code);

#endif
