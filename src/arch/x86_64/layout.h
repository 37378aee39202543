/* SPDX-License-Identifier: MIT
 *
 * Constants that thunks.S and the C code must agree on, and where the kernel saves registers.
 */
#ifndef INCSTACK__LAYOUT_H
#define INCSTACK__LAYOUT_H

#define INCSTACK__THUNK_COUNT 4096   /* thunks in the first pool */
#define INCSTACK__THUNK_SIZE 16      /* bytes of a thunk, and of its cell */
#define INCSTACK__POOL_BYTES 65536   /* INCSTACK__THUNK_COUNT * INCSTACK__THUNK_SIZE */
#define INCSTACK__RECORD_BYTES 24    /* of a barrier; in later pools the records follow the cells */
#define INCSTACK__ENTRY_BYTES 4096   /* the common entry before the thunks, padded */
#define INCSTACK__POOL_STRIDE 262144 /* from one pool made at run time to the next */
#define INCSTACK__LANDINGS 4         /* how many unwinders the thunks can work with */
#define INCSTACK__LANDING_SIZE 16    /* bytes of the landing pad of each unwinder */
#define INCSTACK__LANDING_PUSHED 5   /* offset from which on the slot is restored */
#define INCSTACK__LANDING_LAST 8     /* offset of the last instruction */

/* At the kernel's signal-return code the stack pointer points to a ucontext. Where it has the registers
 * of the interrupted frame, in bytes. */
#define INCSTACK__SIGNAL_FP 120
#define INCSTACK__SIGNAL_SP 160
#define INCSTACK__SIGNAL_PC 168

/* Offsets in struct incstack_stack and struct incstack__cell. */
#define INCSTACK__STACK_BUSY 0
#define INCSTACK__CELL_RESUME 0
#define INCSTACK__CELL_STACK 8

#endif
