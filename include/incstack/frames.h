/* SPDX-License-Identifier: MIT
 *
 * The frame iterator: walks over a stack one frame at a time, from the top to the base. It needs
 * no memory but its own struct, has no limit of depth, and changes nothing that samples use. It
 * finds callers by the rules of the embedder's table, and reads the original return addresses
 * where barriers have replaced them. It may walk in a signal handler, and over the stack of
 * another thread that holds still, for example one that waits in its handler.
 *
 *     const struct incstack_frames_place place = {.stack = stack};
 *     struct incstack_frames frames;
 *     int more = incstack_frames_begin(&frames, &place, &top);
 *     while (more >= 0 && (more = incstack_frames_next(&frames)) > 0)
 *             use(frames.function, frames.position, frames.kind);
 *
 * Conventions as in incstack.h. A walk belongs to one thread at a time.
 */
#ifndef INCSTACK_FRAMES_H
#define INCSTACK_FRAMES_H

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* Where a walk takes place: on a stack that has a state, or on any machine stack. */
struct incstack_frames_place {
	struct incstack_stack *stack;     /* its state; if it is set, the others are not used */
	struct incstack_runtime *runtime; /* whose table finds rules */
	uintptr_t low;                    /* the lowest address of the stack; both 0: unknown */
	uintptr_t high;                   /* where the stack begins */
};

/* The state of a walk; only the iterator uses it. */
struct incstack_frames_state {
	struct incstack_runtime *runtime; /* whose table finds rules */
	struct incstack_stack *stack;     /* the state of the stack; may be null */
	uintptr_t low;         /* the lowest address of the stack; equal to high: unknown */
	uintptr_t high;        /* where the stack begins */
	uintptr_t mapped_low;  /* memory outside of the stack that is known to be readable */
	uintptr_t mapped_high; /* the end of this memory */
	uint64_t rule;         /* the rule of the frame */
	int32_t result;        /* what the call after the last frame returns; 1: go on */
	uint32_t interrupted;  /* whether the top was interrupted at any place */
	uint32_t begun;        /* whether the top was shown */
	uint32_t lowered;      /* signal frames that led to a lower address */
	uint32_t count;        /* the elements of `decoded` that are set */
	uint32_t next;         /* the first of them that was not shown yet */
	struct incstack_virtual_frame decoded[INCSTACK_VIRTUAL_MAX]; /* of `frame` */
};

/* A walk. After incstack_frames_next has returned 1, the first members describe a frame. They may
 * only be read. Inlined frames come before the frame that they are inlined into, and share its
 * `frame`. */
struct incstack_frames {
	struct incstack_frame frame;        /* the physical frame; flags: EXACT and SIGNAL */
	uint64_t function;                  /* from decode; the pc if decode could not be called */
	int32_t position;                   /* from decode; -1: unknown */
	uint32_t kind;                      /* enum incstack_frame_kind */
	struct incstack_frames_state state; /* private */
};

/* Prepares a walk from *top towards the base. With INCSTACK_TOP_INTERRUPTED, the top was
 * interrupted at any place: the caller is a signal handler, or walks over a thread that waits in
 * one. Then the walk calls the table's group `signals` instead of the group `code`, whose functions
 * may wait for a lock that the interrupted code holds. One exception: if signals.find_rule is null,
 * the walk calls code.find_rule_quickly. Do not walk over interrupted code if
 * code.find_rule_quickly is not async-signal-safe.
 *
 * Before the walk reads a word outside of the known bounds, it asks the kernel whether the page is
 * readable: a system call for each page. top->slot is ignored.
 *
 * On a stack that has a state, the iterator refuses to walk while an operation on the stack is in
 * progress, or was interrupted. A stack that the embedder walks is walked by `caller` of its walker,
 * but not from an interrupted top; if `top` is null, the walk begins at the frame that `youngest`
 * returns.
 * Errors: EINVAL; EUNWIND: the top is in the library's own code that handles a return, and
 * the frame that runs next is not known; EBUSY: an operation, or a return through a barrier, is in
 * progress.
 * Thread: any, while the code on the stack holds still. Signal: yes, with INTERRUPTED.
 * Allocates: never. Blocks: never. */
INCSTACK_API int incstack_frames_begin(struct incstack_frames *frames,
				       const struct incstack_frames_place *place,
				       const struct incstack_top *top);

/* Goes to the next frame: first the top, then its caller, and so on. Returns 1 if there is one,
 * and 0 if the last one was the outermost frame. A negative result says why the caller of the last
 * frame is unknown; EUNWIND: it has no rule, or its words cannot be read or contradict each other.
 * Each further call returns the same.
 * Errors: EINVAL, EUNWIND.
 * Thread: any, while the code on the stack holds still. Signal: if the top was INTERRUPTED.
 * Allocates: never. Blocks: never. */
INCSTACK_API int incstack_frames_next(struct incstack_frames *frames);

INCSTACK_END_C

#endif
