/* SPDX-License-Identifier: MIT
 *
 * Incremental stack tracing: the public interface.
 *
 * A sample records the top frame and arranges to be told when it returns; the
 * callers are captured one by one as they are about to run again, and traces
 * that share callers share the objects that describe them (Gnedt 2014, chapter
 * 3; Hofer, Gnedt, Mössenböck, ICPE'15, section 5). retrieve completes what is
 * still open and hands the traces over.
 *
 * Every function returns 0 (or a count) on success and a negative INCSTACK_E*
 * otherwise, checks its arguments in every build, and states:
 *   Thread     who may call it: any | owner (the thread that runs on the stack,
 *              or who holds that thread stopped and has called own)
 *   Signal     whether a signal handler may call it
 *   Allocates  whether it may call the embedder's allocate
 *   Blocks     whether it may wait
 */
#ifndef INCSTACK_INCSTACK_H
#define INCSTACK_INCSTACK_H

#include <incstack/embedder.h>

INCSTACK_BEGIN_C

enum incstack_error {
	INCSTACK_EINVAL = -1,  /* a null, misaligned or contradictory argument */
	INCSTACK_ENOMEM = -2,  /* the embedder's allocate failed */
	INCSTACK_ELIMIT = -3,  /* the stack's byte limit is reached; counted */
	INCSTACK_ETHREAD = -4, /* the caller does not own the stack */
	INCSTACK_EBUSY = -5,   /* the stack is in the middle of an operation; counted */
	INCSTACK_EUNWIND = -6, /* the top frame has no unwind rule; counted */
	INCSTACK_ERANGE = -7,  /* an address outside the stack */
};

/* The text of an error code, "success" for 0; never null.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API const char *incstack_error_text(int error);

/* INCSTACK_VERSION of the library that is linked.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_version(void);

/* ---- objects ------------------------------------------------------------- */

struct incstack_runtime; /* the embedder's table, options, cached unwind rules */
struct incstack_stack;   /* one stack: of a thread, or of a fiber */

enum incstack_mode {
	INCSTACK_MODE_PATCH = 0, /* return addresses are patched; falls back to validate
	                          * where the hardware forbids it (shadow stacks) */
	INCSTACK_MODE_VALIDATE,  /* nothing is written: known frames are compared */
	INCSTACK_MODE_FULL,      /* every sample walks the whole stack */
	INCSTACK_MODE_EMBEDDER,  /* the embedder's own barrier: only, and at first, on stacks
	                          * of incstack_stack_create_embedder */
};

/* The library chooses the barrier distance from what it observes; a sample may then go
 * further to meet an older barrier, until a nearer one is worth its price. */
#define INCSTACK_DISTANCE_ADAPTIVE (-1)
#define INCSTACK_DISTANCE_MAX 64

struct incstack_options {
	size_t size; /* sizeof(struct incstack_options) */
	const struct incstack_embedder *embedder;
	void *context;         /* passed to every embedder function */
	uint64_t stack_bytes;  /* most memory for the samples of one stack; 0: 1 GiB */
	uint32_t chunk_bytes;  /* unit of allocation; 0: 64 KiB */
	uint32_t mode;         /* enum incstack_mode, for stacks created later */
	int32_t distance;      /* barrier distance: 0..INCSTACK_DISTANCE_MAX, or ADAPTIVE */
	uint32_t thunk_limit;  /* most barriers alive at once in this runtime; 0: no limit */
};

/* Errors: EINVAL, also for options that contradict each other (a chunk larger than a
 * stack's limit, one of allocate and release alone) or a size that ends in the middle
 * of a field; ENOMEM. What is out of bounds but harmless is brought into bounds.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_runtime_create(const struct incstack_options *options,
					 struct incstack_runtime **runtime);

/* INCSTACK_EBUSY while a stack of it exists.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_runtime_destroy(struct incstack_runtime *runtime);

/* In the child of fork, before any other call: what threads that the child does not have
 * were doing with the runtime will never be finished. Sets free what they held; at most,
 * memory that one of them was about to reuse is lost, and rules are looked up again. The
 * stacks of these threads are abandoned (incstack_stack_abandon). Errors: EINVAL.
 * Thread: any, alone in its process. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_runtime_forked(struct incstack_runtime *runtime);

/* Creates the state of the stack that occupies [low, high), owned by the calling
 * thread, with room for one chunk of traces. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_stack_create(struct incstack_runtime *runtime, uintptr_t low,
				       uintptr_t high, struct incstack_stack **stack);

/* Creates the state of a stack that only the embedder can walk, by the functions
 * caller, arm and disarm of its table, which get `identity`. Its frames are named
 * by numbers that need no order (INCSTACK_FRAME_* and embedder.h), and returns are
 * reported by incstack_stack_returned. The mode is FULL if the runtime's is, else
 * EMBEDDER. On such a stack `top.sp` names the top frame, top.slot is ignored, a
 * sample with INCSTACK_TOP_INTERRUPTED is refused, and functions that are about
 * return slots and stack addresses (slot_write, unwinding_to, stack_moved) refuse
 * with INCSTACK_EINVAL. Errors: EINVAL, also where the table lacks one of the
 * three; ENOMEM, ELIMIT.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_stack_create_embedder(struct incstack_runtime *runtime, void *identity,
						struct incstack_stack **stack);

/* Creates a state for samples on stacks that nobody described: those of coroutines that a
 * program switches by instructions of its own. The mode is FULL and stays so: nothing is
 * patched, and nothing is remembered from one sample to the next. A walk asks the kernel
 * whether a page can be read before it reads there, one system call for each page. Errors:
 * as incstack_stack_create.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_stack_create_anywhere(struct incstack_runtime *runtime,
						struct incstack_stack **stack);

/* Restores every return slot that still holds our thunk, drops the traces that
 * were not retrieved (counted as lost) and frees the state.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_destroy(struct incstack_stack *stack);

/* As destroy, for a stack whose memory may be gone: no slot is read or written,
 * and nothing may ever run on it again.
 * Thread: any, while nobody runs on it. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_abandon(struct incstack_stack *stack);

/* Says that the memory of the stack is somebody else's now (a new fiber begins in
 * it): no slot is read or written, and no frame of before may ever run again. The
 * traces stay, what was still open in them is truncated.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_forget(struct incstack_stack *stack);

/* In a child of fork, of which the calling thread is the only one: restores every return
 * slot of the stack that still holds our thunk. The stack itself may have been wiped
 * (MADV_WIPEONFORK), and nothing else may be done with it afterwards; the memory of its
 * frame objects must still be there. Null: nothing is done.
 * Thread: that one. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_stack_forked(struct incstack_stack *stack);

/* 1 while an operation on the stack, or a return through one of its thunks, is in progress:
 * for a signal handler that wants to know what it has interrupted. 0 for null.
 * Thread: owner. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_is_busy(const struct incstack_stack *stack);

/* Makes the calling thread the owner: a fiber resumes on this thread, or the
 * caller holds the thread that runs on the stack. Errors: EINVAL.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_own(struct incstack_stack *stack);

/* Changes how returns are noticed, also in the middle of open traces: barriers
 * are lifted after the open traces were completed, as far as reserved memory goes
 * (else truncated and counted). Errors: EINVAL, ETHREAD, EBUSY.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_set_mode(struct incstack_stack *stack, enum incstack_mode mode);

/* ---- sample and retrieve --------------------------------------------------- */

/* The frame that is the top of a trace; younger frames are invisible. */
struct incstack_top {
	/* Its position. A return address as the slot holds it now, maybe a barrier's thunk,
	 * so that a hook may be reached by a tail call. */
	uintptr_t pc;
	uintptr_t sp;   /* its stack pointer */
	uintptr_t fp;   /* its frame pointer register */
	uintptr_t slot; /* its return slot; 0: found by its rule */
	uint32_t flags; /* INCSTACK_TOP_* */
	uint32_t reserved;
};

enum {
	INCSTACK_TOP_EXACT = 1u << 0, /* pc is where it stands (a poll), not a return address */
	/* In a signal handler, which interrupted it at pc (implies EXACT): its own
	 * return slot is not patched, and the embedder is not called. */
	INCSTACK_TOP_INTERRUPTED = 1u << 1,
	/* On a stack that the embedder walks: as INCSTACK_RULE_DECODE_NOW. */
	INCSTACK_TOP_DECODE_NOW = 1u << 2,
};

/* Takes a sample: starts a trace whose top is *top. id and weight are the
 * caller's and come back unchanged. A sample that is not taken is counted.
 * A top outside the stack is on one that nobody described, a signal's perhaps: the
 * walk patches nothing there, and where it comes to this stack it goes on as always.
 * Errors: EINVAL, ETHREAD, ELIMIT (reserve more), EBUSY, EUNWIND.
 * Algorithm: ICPE'15 section 5.2, with the barrier `distance` frames below; where the
 * distance is adaptive, rented before it is bought (Karlin et al. 1988).
 * Thread: owner. Signal: with INCSTACK_TOP_INTERRUPTED. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_sample(struct incstack_stack *stack, uint64_t id, uint64_t weight,
				 const struct incstack_top *top);

/* Makes sure that at least `bytes` of traces can be recorded without an
 * allocation, and all frames that the stack has now besides, so that open traces are
 * completed whatever returns (unless that goes beyond stack_bytes); and that thunks
 * are left: when those in the text run short (4095 barriers of all stacks), more are
 * made here, at create, and at retrieve, 4096 at a time, up to 266239; they stay
 * until the process ends. Errors: EINVAL, ETHREAD, EBUSY, ELIMIT, ENOMEM.
 * Thread: owner. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_stack_reserve(struct incstack_stack *stack, size_t bytes);

/* How many bytes, as reserve counts them, are left; 0 for null. It takes less
 * time than a reserve that finds nothing to do: to ask before each sample.
 * Thread: owner. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API size_t incstack_stack_room(const struct incstack_stack *stack);

/* A record of one frame at one time. 32 bytes. */
struct incstack_frame_object {
	const struct incstack_frame_object *parent; /* the caller; null: see flags */
	uint64_t method;   /* the embedder's identifier, the pc where nothing decodes */
	uintptr_t address; /* the frame address: the frame's stack pointer at its call */
	int32_t bci;       /* position in the method; -1: unknown */
	uint32_t flags;    /* INCSTACK_OBJECT_* */
};

enum {
	INCSTACK_OBJECT_FILLED = 1u << 0,    /* captured; otherwise a skeleton */
	INCSTACK_OBJECT_EXACT = 1u << 1,     /* method (undecoded) is an exact pc */
	INCSTACK_OBJECT_VIRTUAL = 1u << 2,   /* its callee is inlined into it and has its address */
	INCSTACK_OBJECT_BASE = 1u << 3,      /* the outermost frame: the trace is complete */
	INCSTACK_OBJECT_TRUNCATED = 1u << 4, /* the callers of this frame are unknown */
	INCSTACK_OBJECT_SIGNAL = 1u << 5,    /* the kernel's signal-return frame */
	INCSTACK_OBJECT_RAW = 1u << 6,       /* method is still the pc: nothing decodes it, or its
	                                      * position was gone before it could be read */
	INCSTACK_OBJECT_GAP = 1u << 9,       /* parent is known, but is not the direct caller; only
	                                      * until it is retrieved (incstack_stack_tree) */
};

struct incstack_trace {
	const struct incstack_trace *next; /* the next younger sample */
	uint64_t id;
	uint64_t weight;
	const struct incstack_frame_object *top;
	/* The youngest object that the stack already had when the sample was taken. It and
	 * its callers were active at an earlier sample, and so was the frame right above it:
	 * its position may be new, its activation is not (Whaley 2000, section 5.2: old
	 * activations). What is above that frame is new. Null: all is new. Exact with
	 * barrier distance 0, else a lower bound of what is old. */
	const struct incstack_frame_object *old;
};

/* The traces of one retrieve, oldest first, and everything they point to. */
struct incstack_tree {
	const struct incstack_trace *traces;
	uint64_t count;     /* traces */
	uint64_t objects;   /* frame objects */
	uint64_t truncated; /* frame objects whose callers are unknown */
};

/* Completes the open traces, hands them all over in *tree and leaves the stack
 * with none. Barriers and known callers stay for the next samples: they are
 * copied, so the tree belongs to the caller alone until it releases it.
 * Errors: EINVAL, ETHREAD, EBUSY (also from inside decode; counted), ENOMEM
 * (nothing is lost: the traces stay). It may take more memory than stack_bytes, for
 * what was sampled is completed and decoded. Frames that were popped unannounced are
 * noticed by the owner that runs on the stack; who holds it from outside, after such
 * an exit, takes a sample first.
 * Thread: owner. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_retrieve(struct incstack_stack *stack, struct incstack_tree **tree);

/* Thread: any, one at a time, before its runtime is destroyed. Signal: no.
 * Allocates: never. Blocks: never. */
INCSTACK_API int incstack_tree_release(struct incstack_tree *tree);

/* Completes the open traces as retrieve does, and hands nothing over: until the next
 * sample all callers of what was sampled are known. Errors: EINVAL, ETHREAD, EBUSY,
 * ENOMEM (some are still open).
 * Thread: owner. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_stack_complete(struct incstack_stack *stack);

/* 1 if callers of what was sampled were left to be walked later, 0 if all are known.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_has_gaps(const struct incstack_stack *stack);

/* The tree that the next retrieve will hand over, while it is made: `traces` leads to what
 * has been sampled since the last retrieve, in words that are stored when what they lead to
 * is complete; nothing else in it is set. It and all of that lie in memory of
 * allocate_traces, so that another process which shares this memory can read the traces at
 * any moment, whatever became of this process. There an object without FILLED is a
 * skeleton, one with GAP has callers between it and its parent that nobody has walked yet,
 * and one without a parent, BASE and TRUNCATED is just being worked on. The pointer is
 * valid until the next retrieve. Null for null.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API const struct incstack_tree *incstack_stack_tree(const struct incstack_stack *stack);

/* ---- the contract with code that walks or changes the stack ---------------- */

/* The true content of a return slot: what it would hold without the library; 0
 * for a null or misaligned address.
 * Needs no state of a stack and takes constant time: the thunk that the slot
 * holds names its barrier. For walkers, debuggers, crash handlers.
 * Thread: any, on a stack that does not run. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API uintptr_t incstack_slot_read(const uintptr_t *slot);

/* Changes where a frame will return to, through a barrier if the slot has one.
 * The recorded position of its caller does not change (thesis 3.3).
 * Errors: EINVAL, ETHREAD, EBUSY; ERANGE: the slot is not in the stack.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_slot_write(struct incstack_stack *stack, uintptr_t *slot,
				     uintptr_t resume);

/* Says that the frames below address sp (younger than it) will be popped without
 * returning: an exception, longjmp. Open traces are captured down to there. An
 * operation that the caller interrupted, a signal handler, ends: what it had open
 * is truncated. retrieve and set_mode must not be ended so: block signals there.
 * Errors: EINVAL, ETHREAD, EBUSY; ERANGE: sp is not in [low, high].
 * Thread: owner. Signal: right before it jumps out. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_unwinding_to(struct incstack_stack *stack, uintptr_t sp);

/* Says, on a stack that the embedder walks, that control is about to come back to
 * the frame `frame`, which `arm` put a barrier on, or that the frame is about to be
 * popped without that (an exception). Its position is still that of the call, and
 * its callers are as they were. The barrier is gone then; another frame further out
 * may be armed before this returns. Errors: EINVAL, ETHREAD, EBUSY; ERANGE: the
 * frame had no barrier.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_returned(struct incstack_stack *stack, uintptr_t frame);

/* Says that the return slot of one frame moved (on-stack replacement). The
 * content is taken to have been copied already; the slots of its callees stay where
 * they are. Errors: EINVAL, ETHREAD, EBUSY; ERANGE: a slot is not in the stack. On a stack that the embedder walks
 * the two are the old and the new name of the frame; its barrier moves with it.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_frame_moved(struct incstack_stack *stack, uintptr_t old_slot,
					    uintptr_t new_slot);

/* Says that the stack was copied: its highest address is now new_high, and every
 * slot lies as far below it as before. Errors: EINVAL, ETHREAD, EBUSY.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_moved(struct incstack_stack *stack, uintptr_t new_low,
				      uintptr_t new_high);

/* Forgets the rules for [low, high) in all stacks of the runtime, and, in the
 * stack if it is not null, decodes every object captured there. Called before
 * the code goes, for each stack once. A walk through the code after the call learns its
 * rules again: where that may be, it is called once more, without a stack, after the code
 * went and before other code runs at its place. That an address has no rule is remembered,
 * too: a table without find_rule_quickly needs the call where code appears at an address
 * that samples may have met before. Errors: EINVAL, ETHREAD, EBUSY, ENOMEM (the
 * code must stay until another call has succeeded).
 * Thread: owner of stack. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_code_unloading(struct incstack_runtime *runtime,
					 struct incstack_stack *stack, uintptr_t low,
					 uintptr_t high);

/* ---- observation ------------------------------------------------------------ */

/* Counters of one stack since its creation. */
struct incstack_stats {
	size_t size; /* sizeof(struct incstack_stats), set by the caller */
	uint64_t samples;         /* taken */
	uint64_t walked;          /* frames walked by rules */
	uint64_t shared;          /* samples of which some callers were known: those with `old` */
	uint64_t returns;         /* returns intercepted */
	uint64_t planted;         /* barriers planted */
	uint32_t mode;            /* enum incstack_mode in force */
	int32_t distance;         /* barrier distance in force */
	uint64_t lost_limit;      /* refused: no memory within the limit */
	uint64_t lost_busy;       /* refused: in the middle of an operation */
	uint64_t lost_unwind;     /* refused: no rule for the top frame */
	uint64_t lost_retrieve;   /* dropped with the stack before retrieve */
	uint64_t truncated;       /* objects whose callers became unknown */
	uint64_t unwound;         /* barriers passed by an unwinder or unwinding_to */
	uint64_t stale;           /* barriers that vanished unannounced */
	uint64_t no_thunk;        /* barriers not planted for want of a thunk, or because arm
	                           * refused: the walk went on */
	uint64_t broken;          /* operations after which an invariant did not hold: a bug of
	                           * the library; only debug builds look */
	uint64_t pools;           /* pools of thunks that this stack had made */
	uint64_t pools_refused;   /* made in vain: no memory, no executable memory, or no
	                           * unwinder to tell of them; no_thunk counts what follows */
	uint64_t rules_unkept;    /* unwind rules, of the whole runtime, that a sample or a return
	                           * asked for and had no room to keep: asked for again. A
	                           * reserve or retrieve makes room */
	uint64_t foreign_unwinders; /* exceptions of an unwinder that the library cannot work
	                           * with, for example one that is linked statically into a
	                           * plugin: barriers were lifted, and the mode is validate
	                           * from there on */
	uint64_t revived;         /* returns through barriers that were taken for gone: somebody
	                           * copies stacks. After eight of them in the whole runtime
	                           * nothing is patched any more: each stack in mode patch
	                           * changes to validate at its next reserve or retrieve */
};

/* Errors: EINVAL.
 * Thread: owner, or any while no operation is in progress. Signal: no.
 * Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_stats(const struct incstack_stack *stack,
				      struct incstack_stats *stats);

/* Whether exceptions of the unwinder whose code contains that address pass patched frames:
 * 1, or 0 where it does not export the functions of the Itanium interface, for example
 * because it is linked statically into the object that uses it, or where thunks were made
 * at run time and it was not told. Before such a one walks, incstack_stack_set_mode must
 * lift the barriers.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_unwinder_known(uintptr_t code);

/* Executes docs/invariants.md over the stack: 0, or the number of the first
 * invariant that does not hold, or EINVAL.
 * Thread: owner, or any while no operation is in progress. Signal: no.
 * Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_verify(const struct incstack_stack *stack);

INCSTACK_END_C

#endif
