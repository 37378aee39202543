/* SPDX-License-Identifier: MIT
 *
 * The symbols of a module, sorted by address. libdw searches them one by one for each address.
 */
#ifndef INCSTACK_TOOL_SYMBOL_TABLE_H
#define INCSTACK_TOOL_SYMBOL_TABLE_H

#include <elfutils/libdwfl.h>

struct tool_symbol_table;

/* Returns null if there is no memory. The module must outlive the table. */
struct tool_symbol_table *tool_symbol_table_make(Dwfl_Module *module);
void tool_symbol_table_free(struct tool_symbol_table *table);

/* Returns the name of the symbol that contains an address of the module, or null. Of several the one that
 * begins last counts; of those that begin together, a global one before a weak one before a local one, then
 * the smallest. Where none contains it, the last one without a size counts, within its section. */
const char *tool_symbol_table_find(const struct tool_symbol_table *table, GElf_Addr address);

#endif
