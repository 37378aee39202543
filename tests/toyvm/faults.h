/* SPDX-License-Identifier: MIT
 *
 * Deliberate bugs of the embedder: mistakes that the authors of the papers and others have made.
 * TOYVM_FAULT selects the one that is compiled in: a number, or the variable by which toyvm_faulty
 * chooses. Without it there is no bug. The bugs of the core are in src/trace/fault.h. check.sh
 * shows that the oracle finds each of them.
 */
#ifndef TOYVM_FAULTS_H
#define TOYVM_FAULTS_H

enum {
	BUG_NO_UNWINDING = 1,  /* an exception pops frames and does not announce it */
	BUG_RAW_WRITE,         /* deoptimization writes the slot, not through its barrier */
	BUG_OSR_UNTOLD,        /* a replaced frame moves and this is not announced */
	BUG_ONE_STACK,         /* one state for the stacks of all fibers: their addresses mix */
	BUG_NEXT_CALL,         /* the bci is that of the next call */
	BUG_DECODED_LATE,      /* an interpreted frame is decoded at retrieve */
	BUG_STUB_AS_POSITION,  /* the deoptimization stub is taken for the position */
	BUG_STACK_MOVE_UNTOLD, /* a stack is copied and this is not announced */
	BUG_INLINED_FORGOTTEN, /* only the innermost of inlined frames is reported */
	BUG_RAW_READ,          /* the collector reads slots without translation */
	BUG_OLD_OWNER,         /* a migrated fiber's stack keeps its owner */
	BUG_UNWINDS_TOO_FAR,   /* a frame that survives is announced as popped */
	BUG_RETURN_UNTOLD, /* a frame on the heap returns to one with a barrier and does not announce it */
	BUG_END_PROMISED,  /* a frame is promised to stay after its last poll */
	BUG_INLINED_STAYS, /* code that has inlined another version of a method goes on */
	BUG_EXIT_UNTOLD,   /* an exception leaves instrumented calls, and the meter is not told */
	BUG_REFLECTION_UNTOLD, /* a native method calls one that is not instrumented */
	BUG_CLASS_UNTOLD,      /* the subgraph does not know a class that was loaded */
	/* Bugs that the oracle cannot see. They are for toyvm.valgrind. */
	SLIP_UNCLEARED = 51, /* the locals of a new frame are not cleared */
	SLIP_STACK_FREED,    /* a stack is freed before it is copied */
	SLIP_UNWOUND_FIRST,  /* an exception is announced when its frames are gone */
};

extern int toyvm_fault;
#ifdef TOYVM_FAULT
#define BUG(which) (TOYVM_FAULT == (which))
#else
#define BUG(which) 0
#endif

#endif
