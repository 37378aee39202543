/* SPDX-License-Identifier: MIT
 *
 * Code that no unwind table describes.
 */
#ifndef INCSTACK_RECORDER_UNRULED_H
#define INCSTACK_RECORDER_UNRULED_H

#include <stdbool.h>
#include <stdint.h>

#include <incstack/embedder.h>

/* Gives a CPU profile a rule that is a guess: by the frame pointer. Returns 0, or INCSTACK_EUNWIND if the address
 * is neither that of the instruction that the tick has interrupted, nor in a call. */
int incstack__record_pointer_rule(uintptr_t address, struct incstack_rule *rule);
/* The embedder's returns_into. */
bool incstack__record_returns_into(void *context, uintptr_t pc);

#endif
