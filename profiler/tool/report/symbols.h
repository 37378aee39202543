/* SPDX-License-Identifier: MIT
 *
 * Finds the functions and the lines of the source for the addresses of a trace file, in the files on disk.
 */
#ifndef INCSTACK_TOOL_SYMBOLS_H
#define INCSTACK_TOOL_SYMBOLS_H

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "tracefile/read.h"

struct tool_symbols;

/* Creates the symbols. The reader must outlive them. *written is the time when its file was last written.
 * Returns null if there is no memory. */
struct tool_symbols *tool_symbols_open(const struct incstack__tracefile_reader *reader,
				       const struct timespec *written);
void tool_symbols_close(struct tool_symbols *symbols);

/* Prints a line for each file whose names or lines were needed, and are missing or doubtful. Each line begins
 * with `before`. */
void tool_symbols_tell(const struct tool_symbols *symbols, const char *before, FILE *out);

/* A function that a code lies in, and where in it. */
struct tool_symbols_frame {
	const char *
		name; /* the function, else "module+0xoffset" with the offset of the function's start,
			   * else the address. Never null. Equal names are one pointer. */
	const char *file;     /* the source file, UTF-8; null: unknown */
	int32_t line;         /* in the source file; 0: unknown */
	bool is_inlined;      /* into the next frame */
	const char *module;   /* the path of the file that has the code, UTF-8; null: unknown */
	const char *build_id; /* of the module, in hexadecimal digits; null: unknown */
	uint64_t address; /* as the module's symbols count; that of a caller lies inside the call */
};

/* Returns the frames of a code of the calling context tree: the functions that are inlined there, innermost
 * first, and last the function that they are inlined into. There is at least one. Valid until close. */
const struct tool_symbols_frame *tool_symbols_frames(struct tool_symbols *symbols, uint64_t code,
						     size_t *count);
/* The codes that were looked up so far, by number; null: there are no more. */
const struct tool_symbols_frame *tool_symbols_known(const struct tool_symbols *symbols,
						    uint32_t number, uint64_t *code, size_t *count);
/* Returns the name of the first of them. */
const char *tool_symbols_name(struct tool_symbols *symbols, uint64_t code);
/* Returns the last component of the module's path, or "". */
const char *tool_symbols_module(struct tool_symbols *symbols, uint64_t code);

#endif
