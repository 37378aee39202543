/* SPDX-License-Identifier: MIT
 *
 * The functions of a unit of debug information, and what is inlined into each.
 */
#ifndef INCSTACK_TOOL_SOURCE_FUNCTIONS_H
#define INCSTACK_TOOL_SOURCE_FUNCTIONS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function that is inlined into another one; it has one of these for each of its ranges. */
struct tool_inlined {
	Dwarf_Addr low, high;
	unsigned depth; /* deeper ones are inlined into less deep ones */
	Dwarf_Die die;
};

/* A function; it has one of these for each of its ranges. */
struct tool_function {
	Dwarf_Addr low, high;
	Dwarf_Die die;
	bool is_read; /* the inlined ones are found */
	struct tool_inlined *inlined;
	uint32_t inlined_count;
};

/* The functions of a unit; all zero at first. */
struct tool_functions {
	struct tool_function *functions; /* sorted by `low` */
	uint32_t count;
	bool is_read;
	bool has_all; /* also those inside of functions and classes */
};

void tool_functions_free(struct tool_functions *functions);

/* Returns the function of a unit that has an address, or null. What is inlined into it is found. It is valid
 * until the next call. `left`: see source.h. */
struct tool_function *tool_functions_find(struct tool_functions *functions, Dwarf_Die *unit,
					  Dwarf_Addr address, uint64_t *left);

/* Takes one from the work that is left. Returns false if there is none. */
bool tool_source_spend(uint64_t *left);

#endif
