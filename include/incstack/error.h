/* SPDX-License-Identifier: MIT
 *
 * The error codes of all libraries, and their texts.
 */
#ifndef INCSTACK_ERROR_H
#define INCSTACK_ERROR_H

#include <incstack/version.h>

INCSTACK_BEGIN_C

/* Error codes. "Counted" means that a field of the stack's counters counts the failures. */
enum incstack_error {
	INCSTACK_EINVAL = -1,  /* an argument is null, misaligned or contradictory */
	INCSTACK_ENOMEM = -2,  /* the embedder has no memory */
	INCSTACK_ELIMIT = -3,  /* a limit is reached, for example of memory */
	INCSTACK_ETHREAD = -4, /* the caller does not own the stack */
	INCSTACK_EBUSY = -5,   /* another operation on the stack is in progress; counted */
	INCSTACK_EUNWIND = -6, /* the top frame has no unwind rule; counted */
	INCSTACK_ERANGE = -7,  /* an address or a name does not belong to the stack */
	INCSTACK_EROOM = -8,   /* no room for the trace: reserve some; counted */

	INCSTACK_ETIMEDOUT = -20, /* timed out */
	INCSTACK_EFORKED = -21,   /* the coordinator belongs to the parent of this process */

	INCSTACK_EFORMAT = -32, /* the input is not in the format; see the problem */
	INCSTACK_EIO = -33,     /* the stream failed; errno has the reason */
};

/* Returns the text of an error code, "success" for 0. Never returns null.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API const char *incstack_error_text(int error);

INCSTACK_END_C

#endif
