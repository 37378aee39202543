/* SPDX-License-Identifier: MIT
 *
 * Where a function without a name begins: what a stripped file still says.
 */
#ifndef INCSTACK_TOOL_FUNCTION_START_H
#define INCSTACK_TOOL_FUNCTION_START_H

#include <libelf.h>
#include <stdint.h>

/* The start of the function that holds an address, both as in the file's program
 * headers, by the search table of its unwind information; the address itself where
 * there is none. */
uint64_t tool_function_start(Elf *elf, uint64_t address);

#endif
