/* SPDX-License-Identifier: MIT
 *
 * Finds the file with the symbols of a stripped module.
 */
#ifndef INCSTACK_TOOL_DEBUG_FILE_H
#define INCSTACK_TOOL_DEBUG_FILE_H

#include <elfutils/libdwfl.h>

/* find_debuginfo of Dwfl_Callbacks. */
int tool_debug_file_find(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **found);

#endif
