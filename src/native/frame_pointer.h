/* SPDX-License-Identifier: MIT
 *
 * Steps by the frame pointer, where no unwind rule describes the code.
 */
#ifndef INCSTACK_SRC_NATIVE_FRAME_POINTER_H
#define INCSTACK_SRC_NATIVE_FRAME_POINTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <incstack/embedder.h>

enum { INCSTACK__NATIVE_CALL_MOST = 7 }; /* bytes of a call */

/* Whether a call ends at the end of these bytes. It also tells so of some data. */
bool incstack__native_is_call(const unsigned char code[INCSTACK__NATIVE_CALL_MOST]);
/* The rule of a return address. */
struct incstack_rule incstack__native_pointer_rule(void);

/* Copies code of the process, and a word of the stack. They return false if not all of it is there. */
struct incstack__native_reader {
	void *context;
	bool (*code)(void *context, uint64_t address, void *to, size_t bytes);
	bool (*word)(void *context, uint64_t address, uint64_t *to);
};
/* The rule of an interrupted instruction, whose stack pointer is known. Where the frame pointer is still that of the
 * caller, or again, the rule is by the stack pointer: at the beginning and the end of a function, and in a
 * function that keeps none, if the return address shows that a call leads to it. */
struct incstack_rule incstack__native_pointer_rule_at(const struct incstack__native_reader *reader,
						      uint64_t pc, uint64_t sp);

/* These read code of this process that may be unmapped meanwhile. They may be called anywhere. */
/* Copies memory. Returns false if not all of it is there. */
bool incstack__native_copy(void *to, uintptr_t from, size_t bytes);
/* Whether the instruction before pc is a call. */
bool incstack__native_copied_follows_call(uintptr_t pc);
/* The rule of an instruction of this thread that a signal has interrupted. */
struct incstack_rule incstack__native_pointer_rule_here(uintptr_t pc, uintptr_t sp);

#endif
