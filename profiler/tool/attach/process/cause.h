/* SPDX-License-Identifier: MIT
 *
 * For what a thread waits, by the code at which it has left its processor.
 */
#ifndef INCSTACK_TOOL_ATTACH_CAUSE_H
#define INCSTACK_TOOL_ATTACH_CAUSE_H

#include "space.h"
#include "tracefile/states.h"

/* Returns the state of a thread that waits at a pc. */
enum incstack__state tool_attach_cause(struct tool_attach_space *space, uint64_t pc);
/* Returns the state of a thread that waits in a system call; negative: it is in none. */
enum incstack__state tool_attach_cause_of_call(long number);
/* The same for the bytes before a pc, of which there are `count`. */
enum incstack__state tool_attach_cause_of_code(const unsigned char *code, size_t count);

#endif
