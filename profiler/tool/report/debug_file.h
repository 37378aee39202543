/* SPDX-License-Identifier: MIT
 *
 * Finds the files with the symbols and the debug information of a stripped module.
 */
#ifndef INCSTACK_TOOL_DEBUG_FILE_H
#define INCSTACK_TOOL_DEBUG_FILE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>

/* The files that a module has besides its own; all zero at first. */
struct tool_debug_file {
	char *path;    /* with the symbols; null: unknown */
	char *refused; /* null: none; else a file that is damaged or of another build */
	char *shared;  /* null: none is missing; else the file that it shares with others (dwz) */
	Dwarf *alt;    /* from the shared file; null: none */
	int alt_file;  /* its descriptor */
};

/* find_debuginfo of Dwfl_Callbacks. The user data of the module is a struct tool_debug_file. It looks by
 * build-id in /usr/lib/debug, then by the debug link beside the module, in .debug, and in /usr/lib/debug, then
 * it asks debuginfod. */
int tool_debug_file_find(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **found);

/* Opens the file with the symbols of a build, whose own file is not there. Returns a descriptor or -1. */
int tool_debug_file_open(struct tool_debug_file *files, const unsigned char *id, size_t length);

/* Gives debug information the file that it shares with that of others. `path` is the file that it is from. */
void tool_debug_file_share(struct tool_debug_file *files, Dwarf *dwarf, const char *path);

/* After the debug information is freed. */
void tool_debug_file_free(struct tool_debug_file *files);

#endif
