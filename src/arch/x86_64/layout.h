/* SPDX-License-Identifier: MIT
 *
 * Numbers that thunks.S and the C code must agree on.
 */
#ifndef INCSTACK__LAYOUT_H
#define INCSTACK__LAYOUT_H

#define INCSTACK__THUNK_COUNT 4096   /* thunks in the first pool */
#define INCSTACK__THUNK_SIZE 16      /* bytes of a thunk, and of its cell */
#define INCSTACK__POOL_BYTES 65536   /* INCSTACK__THUNK_COUNT * INCSTACK__THUNK_SIZE */
#define INCSTACK__ENTRY_BYTES 4096   /* the common entry in front of the thunks */
#define INCSTACK__POOL_STRIDE 262144 /* from one pool made at run time to the next */
#define INCSTACK__LANDINGS 4         /* unwinders that the thunks can work with */
#define INCSTACK__LANDING_SIZE 16    /* bytes of each one's landing pad */
#define INCSTACK__LANDING_PUSHED 5   /* from here on the slot is whole */
#define INCSTACK__LANDING_LAST 8     /* its last instruction */

/* What is read of the kernel's signal frame, from the stack pointer on. */
#define INCSTACK__SIGNAL_BYTES 176

/* Offsets in struct incstack_stack and struct incstack__cell. */
#define INCSTACK__STACK_BUSY 0
#define INCSTACK__CELL_RESUME 0
#define INCSTACK__CELL_STACK 8

#endif
