/* SPDX-License-Identifier: MIT
 *
 * What a program that embeds the library tells it: how to find the caller of a
 * frame (unwind rules), what a position means (decode), and where memory comes
 * from. The core never calls anything of the host but this table.
 */
#ifndef INCSTACK_EMBEDDER_H
#define INCSTACK_EMBEDDER_H

#include <stddef.h>
#include <stdint.h>

#include <incstack/version.h>

INCSTACK_BEGIN_C

/* A frame as a walk meets it. `sp` is the frame address: the value of the stack
 * pointer in this frame at its call (or, for an exact top, at its pc). */
struct incstack_frame {
	uintptr_t pc;
	uintptr_t sp;
	uintptr_t fp;
	uint32_t flags; /* INCSTACK_FRAME_* */
	uint32_t reserved;
};

enum {
	INCSTACK_FRAME_EXACT = 1u << 0,  /* pc is where the frame stands, not a return address */
	INCSTACK_FRAME_SIGNAL = 1u << 1, /* the kernel's signal-return frame */
	/* Set by the embedder's `caller`: */
	INCSTACK_FRAME_ARMED = 1u << 2,      /* the barrier that `arm` put on it is still there */
	INCSTACK_FRAME_DECODE_NOW = 1u << 3, /* as INCSTACK_RULE_DECODE_NOW */
};

/* How to go from a frame to its caller.
 *
 *   CFA          = sp + cfa_offset | fp + cfa_offset | *(fp + cfa_offset)
 *   return slot  = CFA - ra_offset
 *   caller's sp  = CFA,  caller's pc = *slot
 *   caller's fp  = *(CFA - fp_offset), or unchanged where fp_offset is 0;
 *                  *(fp - fp_offset) where the CFA is *(fp + cfa_offset)
 *
 * Offsets are in bytes, multiples of 8. */
enum incstack_rule_kind {
	/* Nothing is known: the walk ends, truncated. Slots that lead there are never patched. */
	INCSTACK_RULE_NONE = 0,
	INCSTACK_RULE_SP,       /* CFA from the stack pointer */
	INCSTACK_RULE_FP,       /* CFA from the frame pointer */
	INCSTACK_RULE_FP_DEREF, /* CFA stored at an offset from the frame pointer */
	INCSTACK_RULE_SIGNAL,   /* the kernel's signal frame: registers from its ucontext */
	INCSTACK_RULE_END,      /* the outermost frame: the walk ends, complete */
};

struct incstack_rule {
	uint32_t kind; /* enum incstack_rule_kind */
	int32_t cfa_offset;
	uint16_t ra_offset;
	uint16_t fp_offset;
	uint32_t flags; /* INCSTACK_RULE_* below */
};

enum {
	/* The position of frames at this pc lives in the frame (an interpreter):
	 * decode is called when the frame is captured, not at retrieve. A frame that
	 * a signal handler's sample captures, where nothing can be called, stays
	 * INCSTACK_OBJECT_RAW. */
	INCSTACK_RULE_DECODE_NOW = 1u << 0,
	/* The return into this code is never intercepted: something reads, moves or
	 * copies its frames and their return addresses. */
	INCSTACK_RULE_NO_BARRIER = 1u << 1,
};

/* One frame as the program's author sees it; a physical frame decodes to one or,
 * with inlining, several, innermost first. */
struct incstack_virtual_frame {
	uint64_t method;
	int32_t bci; /* -1: unknown */
	uint32_t reserved;
};

/* The most virtual frames that one physical frame decodes to; what is deeper is
 * cut at the outer end. */
#define INCSTACK_VIRTUAL_MAX 64

/* The table of functions. `size` is sizeof(struct incstack_embedder) of the
 * caller's headers: a table from an older header is accepted, and what it lacks
 * is taken as null. Every function may be null except where stated. */
struct incstack_embedder {
	size_t size;

	/* The rule for a look-up address: the pc of an exact frame, pc - 1 of a
	 * return address. Writes *rule and returns 0; a negative INCSTACK_E* means
	 * that the address has no rule. Called once for an address and its unload, and
	 * again where there was no room to keep it (stats.rules_unkept), from a sample,
	 * from retrieve, or from a return that found its rule missing (all registers
	 * are saved then); never from a signal handler: what a sample there missed is
	 * asked for by the next sample, retrieve or reserve outside of one.
	 * Null: every frame keeps a frame pointer. */
	int (*find_rule)(void *context, uintptr_t address, struct incstack_rule *rule);

	/* Turns a physical frame into 1..max virtual ones; returns how many, or a
	 * negative INCSTACK_E*. Null: method = pc, bci = -1. */
	int (*decode)(void *context, const struct incstack_frame *frame,
		      struct incstack_virtual_frame *out, int max);

	/* The position behind a return address that is not one: where the slot holds
	 * a deoptimization handler, its logical pc. Asked of return addresses that
	 * find_rule refuses (of all, if that is null), in the same places; returns pc
	 * itself where it knows none. In a signal handler, where it cannot be asked, a
	 * trace ends at such an address, truncated. */
	uintptr_t (*logical_pc)(void *context, uintptr_t slot, uintptr_t pc);

	/* Memory. Both or neither; neither means malloc and free. Called only by
	 * functions that are marked "Allocates: may". Null on failure. */
	void *(*allocate)(void *context, size_t bytes);
	void (*release)(void *context, void *memory, size_t bytes);

	/* Tells the unwinder that throws the program's exceptions of code that was
	 * made at run time: `info` is a list of CIEs and FDEs as in .eh_frame, ended by
	 * a zero word, valid until the process ends. A negative result means that it
	 * cannot; then the code is not used. Null: __register_frame_info of libgcc, if
	 * the program has it; without either no more thunks are made than the text has,
	 * for an exception would not pass them. */
	int (*register_unwind_info)(void *context, const void *info, size_t bytes);

	/* The next three make stacks that only the embedder can walk, with its own
	 * return barrier (incstack_stack_create_embedder; `identity` is the pointer
	 * that was given there): heap frames of an interpreter, or a stack watermark.
	 * All three or none. There frame.sp is any number but 0 that names a frame
	 * for as long as it lives, and frame.fp is the embedder's own.
	 *
	 * caller goes from *frame to the frame that called it. Returns 1; or 0 where
	 * *frame is the outermost; or a negative INCSTACK_E* where nothing is known
	 * (the trace is truncated). It must say INCSTACK_FRAME_ARMED for a frame that
	 * has a barrier, and for no other: a frame that reuses the memory of another
	 * begins without one. Called from a sample, from retrieve, and from
	 * incstack_stack_returned. */
	int (*caller)(void *context, void *identity, struct incstack_frame *frame);

	/* Asks to be told, by incstack_stack_returned, before control comes back to
	 * `frame`, or before it is popped without that. Once: telling disarms it. Who
	 * pops such a frame untold must take a sample before it retrieves: a sample
	 * notices (the traces that needed it are truncated), retrieve has no top to
	 * look from. A negative result means that this frame cannot have a barrier; then its caller
	 * is tried. */
	int (*arm)(void *context, void *identity, uintptr_t frame);
	void (*disarm)(void *context, void *identity, uintptr_t frame);

	/* As find_rule, and asked before it: what is cheap to tell without a lock. No
	 * signals are blocked meanwhile, as they are around find_rule, and a handler
	 * may jump out of it. Where it refuses, find_rule is asked. It is asked again about
	 * an address that had no rule. May be null. */
	int (*find_rule_quickly)(void *context, uintptr_t address, struct incstack_rule *rule);

	/* Memory for frame objects and traces alone, in pieces of chunk_bytes: for an embedder
	 * that shares it with another process, which reads it by incstack_stack_tree when this
	 * one is gone. Both or neither; neither means that allocate gives it, too. Null on
	 * failure. Called as those. */
	void *(*allocate_traces)(void *context, size_t bytes);
	void (*release_traces)(void *context, void *memory, size_t bytes);
};

INCSTACK_END_C

#endif
