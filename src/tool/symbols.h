/* SPDX-License-Identifier: MIT
 *
 * Names of code: module and address to function, from the files on disk.
 */
#ifndef INCSTACK_TOOL_SYMBOLS_H
#define INCSTACK_TOOL_SYMBOLS_H

#include "heapfile/trace_read.h"

struct tool_symbols;

/* The reader must outlive it. Null where memory ran out. */
struct tool_symbols *tool_symbols_open(const struct incstack__trace_reader *reader);
void tool_symbols_close(struct tool_symbols *symbols);

/* The name of a code of the calling context tree: the function, else
 * "module+0xoffset" with the offset of the function's start, else the address. Never null; valid until close. Two codes in
 * one function share one pointer. */
const char *tool_symbols_name(struct tool_symbols *symbols, uint64_t code);
/* The last component of the module's path, or "". */
const char *tool_symbols_module(struct tool_symbols *symbols, uint64_t code);

#endif
