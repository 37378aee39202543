/* SPDX-License-Identifier: MIT
 *
 * Deliberate bugs of the core, for tests/toyvm: its oracle must find each. They
 * exist only where INCSTACK_FAULT is defined: as the number of the one that is
 * compiled in, or as a variable. No library is ever built so.
 */
#ifndef INCSTACK__FAULT_H
#define INCSTACK__FAULT_H

enum {
	FAULT_ADDRESS_ALONE = 101, /* a frame is known by its address, whatever its slot holds */
	FAULT_THUNK_REUSED,        /* a thunk is used again before it fired */
	FAULT_STORE_FIRST,         /* the slot shows the thunk before its cell is filled */
	FAULT_GAP_FORGOTTEN,       /* what lay between a barrier and the known is left out */
	FAULT_POSITION_REWRITTEN,  /* a new resume address becomes the position */
	FAULT_INCOMPLETE,          /* retrieve does not complete */
	FAULT_FP_NOT_MOVED,        /* a moved stack's saved frame pointer stays */
	FAULT_VIRTUAL_DROPPED,     /* decoding keeps only the innermost frame */
};

#ifdef INCSTACK_FAULT
extern int toyvm_fault;
#define FAULT(which) (INCSTACK_FAULT == (which))
#else
#define FAULT(which) 0
#endif

#endif
