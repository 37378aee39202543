/* SPDX-License-Identifier: MIT
 *
 * The place of a breakpoint in a function.
 */
#ifndef INCSTACK_TOOL_ATTACH_ENTRY_H
#define INCSTACK_TOOL_ATTACH_ENTRY_H

#include "objects.h"

/* Returns the address of the instruction of a function that gets its breakpoint. The first two
 * arguments and the stack are those of the call; rax, rcx and rdx may have changed. */
uint64_t tool_attach_entry(const struct tool_attach_object *object, uint64_t address);

#endif
