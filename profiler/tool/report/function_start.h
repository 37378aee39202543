/* SPDX-License-Identifier: MIT
 *
 * Finds where a function without a name begins. A stripped file still contains this.
 */
#ifndef INCSTACK_TOOL_FUNCTION_START_H
#define INCSTACK_TOOL_FUNCTION_START_H

#include <libelf.h>
#include <stdint.h>

/* Returns the start of the function that contains an address, from the search table of the unwind
 * information; the address itself if it has no entry. Addresses are those of the file's program
 * headers. */
uint64_t tool_function_start(Elf *elf, uint64_t address);

#endif
