/* SPDX-License-Identifier: MIT
 *
 * The symbols and the debug information of one module, read from its file.
 */
#ifndef INCSTACK_TOOL_MODULE_SYMBOLS_H
#define INCSTACK_TOOL_MODULE_SYMBOLS_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <time.h>

#include "tracefile/read.h"
#include "debug_file.h"
#include "source.h"
#include "symbol_table.h"

struct tool_module_symbols {
	const struct incstack__tracefile_module_info *info;
	const char *path;     /* valid UTF-8, */
	const char *build_id; /* and hexadecimal digits or null; for the user of this module */
	bool is_open;
	Dwfl *dwfl;
	Dwfl_Module *module;             /* null: the file cannot be read */
	struct tool_symbol_table *table; /* null: no memory, or no file */
	struct tool_source *source;      /* null: no debug information, or no memory */
	Dwarf_Addr source_bias;          /* subtracted from an address for the source */
	struct tool_debug_file files;
	const char *why; /* not null: why its names cannot be read */
	bool is_newer;   /* the file has the recorded build-id, but is newer than the trace file */
	bool has_only_symbols; /* its own file is not there; the one with the symbols is */
	bool has_bad_source;   /* its debug information cannot be read at all */
	uint32_t codes;        /* that were looked up, */
	uint32_t unnamed;      /* and those without a name */
};

/* Opens the file of the module in `info`; all other members are zero. *written is the time when the trace file was
 * last written. `left`: see source.h. */
void tool_module_symbols_open(struct tool_module_symbols *symbols, const struct timespec *written,
			      uint64_t *left);
void tool_module_symbols_close(struct tool_module_symbols *symbols);

/* Whether its debug information is damaged, as far as it was read. */
bool tool_module_symbols_is_damaged(const struct tool_module_symbols *symbols);

/* Returns the mangled name of the symbol at a pc in memory, or null. */
const char *tool_module_symbols_name(const struct tool_module_symbols *symbols, uint64_t pc);
/* The same as tool_source_find() for a pc in memory. */
size_t tool_module_symbols_source(const struct tool_module_symbols *symbols, uint64_t pc,
				  struct tool_source_frame frames[TOOL_SOURCE_FRAMES_MOST]);
/* Returns the start of the function at a pc in memory, as an address of the file; see function_start.h. */
uint64_t tool_module_symbols_start(const struct tool_module_symbols *symbols, uint64_t pc);

#endif
