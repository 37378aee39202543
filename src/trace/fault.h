/* SPDX-License-Identifier: MIT
 *
 * Deliberate bugs of the core for tests/toyvm, whose oracle must find each of them. They exist only
 * if INCSTACK_FAULT is defined: either as the number of the only bug that is compiled in, or as a
 * variable. No library is built with it.
 */
#ifndef INCSTACK__FAULT_H
#define INCSTACK__FAULT_H

enum {
	FAULT_ADDRESS_ALONE = 101, /* a frame is known by its address, without its slot's content */
	FAULT_THUNK_REUSED,        /* a thunk is used again before it fired */
	FAULT_STORE_FIRST,         /* the slot shows the thunk before its cell is filled */
	FAULT_GAP_FORGOTTEN,       /* frames between a barrier and the known chain are left out */
	FAULT_POSITION_REWRITTEN,  /* a new resume address becomes the position */
	FAULT_INCOMPLETE,          /* retrieve does not complete */
	FAULT_FP_NOT_MOVED,        /* a moved stack's saved frame pointer stays */
	FAULT_VIRTUAL_DROPPED,     /* decoding keeps only the innermost frame */
	FAULT_QUEUED_AT_POLL,      /* a trace from the queue shows where the frame is at the poll */
	FAULT_INTERRUPTED_AS_CALL, /* an interrupted position is taken for a return address */
	FAULT_CALLER_AT_POLL, /* a trace from the queue shows where the caller is at the poll */
};

#ifdef INCSTACK_FAULT
extern int toyvm_fault;
#define FAULT(which) (INCSTACK_FAULT == (which))
#else
#define FAULT(which) 0
#endif

#endif
