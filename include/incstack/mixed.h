/* SPDX-License-Identifier: MIT
 *
 * One trace over two stacks: the frames of an interpreter lie on the heap (heap.h), its C functions and the
 * loop that runs its frames on the machine's stack (incstack.h). One machine frame of the loop may
 * run many frames of the interpreter.
 *
 *     machine's stack        interpreter         the trace
 *     c_function             g                   c_function
 *     loop          <------  anchor              g
 *     sort                   f                   loop, with the flag RUNS
 *     loop          <---+    e                   sort
 *     main              +--  anchor              f
 *                                                e
 *                                                loop, with the flag RUNS
 *                                                main
 *
 * The embedder names the machine frame that runs its frames by an anchor. An anchor is one more frame that
 * `walk` describes (struct incstack_heap_options). It is the caller of the outermost of the frames that one
 * machine frame runs, and its own caller is the next frame of the interpreter:
 *
 *     flags     INCSTACK_MIXED_ANCHOR
 *     function  an address within the machine frame, for example that of a local variable of the loop
 *     name      a name of its own, for example that of the frame before it with a bit set
 *
 * `mark` must refuse an anchor (return a negative number), and no anchor is the youngest frame. An anchor
 * is captured, shared and forgotten like every other frame, so a sample needs time only for the
 * frames that are new, on both stacks. The two traces are merged when they are read. In the trace, the frames
 * of the interpreter come right before the machine frame that runs them. This machine frame has a flag, by which
 * a reader can leave out the loop.
 *
 * The rules of heap.h hold for the interpreter's stack, those of incstack.h for the machine's stack.
 */
#ifndef INCSTACK_MIXED_H
#define INCSTACK_MIXED_H

#include <incstack/heap.h>
#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* In the flags of a frame that `walk` describes, one of the bits of INCSTACK_HEAP_OWN: an anchor. */
#define INCSTACK_MIXED_ANCHOR 0x8000u

/* Two stacks that are sampled together. The embedder sets the first two members and the others to 0, and leaves all
 * of them alone then. If the last retrieve has failed and none follows, release `kept` with
 * incstack_tree_release, which accepts null. Nothing else needs to be freed. */
struct incstack_mixed {
	struct incstack_stack *machine;   /* the machine's stack */
	struct incstack_heap_stack *heap; /* the interpreter's stack */
	struct incstack_tree *kept; /* of a retrieve that failed half-way; otherwise null */
	uint64_t samples;           /* the number of the last sample */
};

/* Takes a sample of both stacks. `machine_top` is as for incstack_stack_sample_at_poll, `heap_top` the
 * youngest frame of the interpreter, which must not be an anchor. All samples of the two stacks must be taken
 * in this way. After an error there is no trace.
 * Errors: those of incstack_stack_sample_at_poll and of incstack_heap_stack_sample; EBUSY also after a
 * retrieve that has failed, until it is repeated.
 * Thread: owner of the machine's stack. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_mixed_sample(struct incstack_mixed *mixed,
				       const struct incstack_top *machine_top, uintptr_t heap_top,
				       uint64_t id, uint64_t weight);

/* The traces of one retrieve. The ids and weights in these trees are the library's: see
 * struct incstack_mixed_trace. */
struct incstack_mixed_tree {
	struct incstack_tree *machine;         /* of the machine's stack */
	const struct incstack_heap_tree *heap; /* of the interpreter */
};

/* Completes the open traces of both stacks, and hands over all of them. `heap_top` is as for
 * incstack_heap_stack_retrieve. The tree belongs to the caller until it releases the tree.
 * Errors: those of incstack_stack_retrieve and of incstack_heap_stack_retrieve. No trace is lost:
 * call it again.
 * Thread: owner of the machine's stack. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_mixed_retrieve(struct incstack_mixed *mixed, uintptr_t heap_top,
					 struct incstack_mixed_tree *tree);

/* Frees the traces; null, and a tree that is empty or was released before, are allowed.
 * Thread: any, one at a time. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_mixed_tree_release(struct incstack_mixed_tree *tree);

/* ---- traces and their frames ---------------------------------------------------------------- */

/* One trace: what one sample has captured. */
struct incstack_mixed_trace {
	uint64_t id;                             /* as passed to sample */
	uint64_t weight;                         /* as passed to sample */
	const struct incstack_trace *machine;    /* the frames of the machine's stack */
	const struct incstack_heap_trace *heap;  /* the frames of the interpreter, with anchors */
};

/* Goes to the next trace, from the oldest on: before the first call, *trace is all zero. Returns 1 if
 * there is one, else 0, or INCSTACK_EINVAL.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_mixed_tree_next(const struct incstack_mixed_tree *tree,
					  struct incstack_mixed_trace *trace);

/* What the embedder expects of a machine frame: whether it runs frames of the interpreter. */
enum incstack_mixed_expectation {
	INCSTACK_MIXED_MAYBE = 0, /* it may run some, or none */
	INCSTACK_MIXED_ALWAYS,    /* it does: a frame of the interpreter's loop */
	INCSTACK_MIXED_NEVER,     /* it does not */
};

/* Tells what is expected of a machine frame. Any other result counts as MAYBE. */
typedef int incstack_mixed_expect_fn(void *context, const struct incstack_frame_object *machine);

/* The flags of a frame of a trace. */
enum {
	/* A machine frame: the frames of the interpreter right before it run in it. */
	INCSTACK_MIXED_RUNS = 1u << 0,
	/* A frame of the interpreter: no machine frame is known that runs it, so machine frames may be missing
	 * around it, or stand before it though they are further out. Or a machine frame that must run frames of
	 * the interpreter, and none are known. */
	INCSTACK_MIXED_LOOSE = 1u << 1,
};

/* A walk over the frames of a trace. After incstack_mixed_frames_next has returned 1, the first members
 * describe a frame; they may only be read. */
struct incstack_mixed_frames {
	const struct incstack_frame_object *machine; /* a machine frame, or null */
	const struct incstack_heap_object *heap;     /* otherwise, a frame of the interpreter */
	uint32_t flags;                              /* INCSTACK_MIXED_* */
	uint32_t loose;     /* how often a group of frames was LOOSE so far; at the end 0 in a sound trace */
	uint32_t truncated; /* 1 if the callers of a frame, on either stack, are unknown; see it at the end */
	/* Private: */
	const struct incstack_frame_object *next_machine; /* the machine frame to be shown next */
	const struct incstack_heap_object *next_heap;     /* the same of the interpreter */
	const struct incstack_heap_object *anchor;        /* the next one; null: there is none */
	incstack_mixed_expect_fn *expect;                 /* as passed to begin */
	void *context;                                    /* as passed to begin */
	uint32_t state; /* before a machine frame, or among frames of the interpreter */
	uint32_t named; /* whether an anchor has named next_machine */
};

/* Prepares a walk over the frames of a trace, from the youngest to the outermost. The trace is
 * merged by the addresses of machine frames: an anchor names the frame [address, caller's address) that
 * contains it. If functions were inlined into that machine frame, it is the outermost of them.
 *   - If no machine frame contains an anchor (the trace of the machine's stack is truncated, the frame has
 *     gone by a tail call, the embedder has told a wrong address), its frames come where the address
 *     would be, or after the last machine frame. They are LOOSE. The outermost machine frame contains
 *     no anchor, because its end is not known.
 *   - If the interpreter's trace is truncated, the frames after its last anchor come last, and are LOOSE.
 *   - Frames of a complete trace after the last anchor are further out than all machine frames: they come
 *     last.
 * What this cannot notice is an anchor that is missing where a machine frame does run frames: they would come
 * with those of the next anchor. It is noticed if `expect` knows the machine frames of the loop:
 * a machine frame of the loop without frames of the interpreter is LOOSE. A frame that runs in a machine frame
 * which NEVER runs one is LOOSE, too.
 * `expect` may be null. Errors: EINVAL.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_mixed_frames_begin(struct incstack_mixed_frames *frames,
					     const struct incstack_mixed_trace *trace,
					     incstack_mixed_expect_fn *expect, void *context);

/* Goes to the next frame; anchors are not shown. Returns 1 if there is one, 0 after the outermost one, or
 * INCSTACK_EINVAL.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_mixed_frames_next(struct incstack_mixed_frames *frames);

INCSTACK_END_C

#endif
