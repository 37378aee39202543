/* SPDX-License-Identifier: MIT
 *
 * The source of an address of a module: file and line, and the functions that are inlined there.
 */
#ifndef INCSTACK_TOOL_SOURCE_H
#define INCSTACK_TOOL_SOURCE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tool_source;

/* A function that an address is in, and where in it. */
struct tool_source_frame {
	const char *name; /* mangled, if the file says how; null: unknown */
	const char *file; /* null: unknown */
	int line;         /* 0: unknown */
};

/* More functions are never inlined into each other. */
enum { TOOL_SOURCE_FRAMES_MOST = 64 };

/* The files are foreign: debug information may lead in a circle, or say the same again and again. So what is
 * read is counted, and nothing more is read when *left is 0. `left` must outlive the source. */
#define TOOL_SOURCE_WORK UINT64_C(100000000)

/* Returns null if there is no memory. The debug information must outlive the source. */
struct tool_source *tool_source_make(Dwarf *dwarf, uint64_t *left);
void tool_source_free(struct tool_source *source);

/* Whether something could not be read so far. */
bool tool_source_is_damaged(const struct tool_source *source);
/* Returns the name of a file of split debug information that was not found, or null. */
const char *tool_source_missing(const struct tool_source *source);

/* Finds the functions that an address of the debug information is in, innermost first; each is inlined into
 * the next one, and the last one is a function of its own. Returns their number; 0: nothing is known. The texts
 * belong to the debug information. */
size_t tool_source_find(struct tool_source *source, Dwarf_Addr address,
			struct tool_source_frame frames[TOOL_SOURCE_FRAMES_MOST]);

#endif
