/* SPDX-License-Identifier: MIT
 *
 * Incremental stack tracing: the public interface.
 *
 * A sample records the top frame and intercepts its return. Each caller is captured
 * when it is about to run again. Traces that share callers share the frame objects
 * that describe them (Gnedt 2014, chapter 3; Hofer, Gnedt, Mössenböck, ICPE'15,
 * section 5). retrieve completes what is still open and hands the traces over.
 * docs/glossary.md explains the terms, docs/references.md lists the papers.
 *
 * Unless stated otherwise, a function returns 0 on success and a negative INCSTACK_E*
 * on failure. It checks its arguments in every build. Its comment states:
 *   Thread     who may call it: "any", or "owner": the thread that runs on the stack,
 *              or a thread that holds that thread stopped and has called
 *              incstack_stack_set_owner
 *   Signal     whether a signal handler may call it
 *   Allocates  whether it may call the embedder's allocate
 *   Blocks     whether it may wait
 */
#ifndef INCSTACK_INCSTACK_H
#define INCSTACK_INCSTACK_H

#include <incstack/embedder.h>
#include <incstack/error.h>

INCSTACK_BEGIN_C

/* ---- objects ------------------------------------------------------------- */

struct incstack_runtime; /* the embedder's table, options, cached unwind rules */
struct incstack_stack;   /* one stack: of a thread, or of a fiber */

/* How the library notices that frames have returned. */
enum incstack_mode {
	INCSTACK_MODE_PATCH = 0, /* return addresses are patched; falls back to validate
	                          * where the hardware forbids it (shadow stacks) */
	INCSTACK_MODE_VALIDATE,  /* no slot is written; a sample compares the known frames */
	INCSTACK_MODE_FULL,      /* every sample walks the whole stack */
	INCSTACK_MODE_EMBEDDER,  /* the embedder's own barrier; possible only on, and initial
	                          * for, stacks of incstack_stack_create_embedder */
};

/* The largest barrier distance, in frames. */
#define INCSTACK_DISTANCE_MAX 64

/* The options of a runtime. incstack_runtime_create copies them and the embedder's table. */
struct incstack_options {
	size_t size;                              /* sizeof(struct incstack_options) */
	const struct incstack_embedder *embedder; /* never null */
	void *context;                            /* passed to every embedder function */
	uint64_t stack_bytes; /* memory limit for the samples of one stack; 0: 1 GiB */
	uint32_t chunk_bytes; /* unit of allocation; 0: 64 KiB */
	uint32_t mode;        /* enum incstack_mode, for stacks created later */
	/* The barrier distance: which caller of the top gets the barrier. 1 is the direct caller,
	 * as in the papers; up to INCSTACK_DISTANCE_MAX. 0: adaptive. The library then chooses the
	 * distance from what it observes. A sample may also walk past the distance to an older
	 * barrier, until a new barrier would have cost less. */
	uint32_t distance;
	uint32_t thunk_limit; /* limit for live barriers in this runtime; 0: no limit */
};

/* Creates a runtime. chunk_bytes and stack_bytes are clamped to what is possible; a distance or
 * a mode out of bounds is an error.
 * Errors: EINVAL, also for options that contradict each other (a chunk larger than a
 * stack's limit; only one of allocate and release; find_rule with frame_pointers) and for a
 * wrong size; ENOMEM.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_runtime_create(const struct incstack_options *options,
					 struct incstack_runtime **runtime);

/* Frees the runtime as soon as its last stack is destroyed and its last tree is released. So the
 * embedder's table must work until then. Null is allowed.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_runtime_destroy(struct incstack_runtime *runtime);

/* Repairs the runtime in the child of fork. Call it before any other function. The child
 * has none of the parent's other threads, so their operations on the runtime never finish.
 * This function releases what they held. At worst, memory that one of them was about to
 * reuse leaks, and rules are looked up again. Abandon the stacks of these threads
 * (incstack_stack_abandon). Errors: EINVAL.
 * Thread: any, alone in its process. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_runtime_forked(struct incstack_runtime *runtime);

/* Makes room for the unwind rules that walks will meet. The operations of a stack that may allocate do so
 * by themselves, but the frame iterator (frames.h) does not. A program that only iterates calls this
 * function once after it has created the runtime, and then again now and then, for example before each
 * walk: if there is room, it is a few instructions. Without room, walks look rules up again.
 * Errors: EINVAL.
 * Thread: any. Signal: no. Allocates: may, by the embedder's `allocate` only. Blocks: never. */
INCSTACK_API int incstack_runtime_reserve(struct incstack_runtime *runtime);

/* Creates the state of the stack that occupies [low, high). The calling thread owns it. It has room
 * for one chunk of traces. Create one state for each stack. A second state is not refused, but the
 * two states share nothing. Each walks the frames that only the other state knows, and patches no
 * slot that the other state has patched.
 *
 * If low and high are 0, the state serves for samples on stacks with unknown bounds, for example
 * those of coroutines that the program switches by its own instructions. The mode is FULL then and
 * cannot change: nothing is patched, and nothing is remembered between samples. Before a walk reads
 * a page it asks the kernel whether the page is readable: one system call for each page. Errors:
 * EINVAL, also if the embedder's table has neither find_rule nor frame_pointers; ENOMEM.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_stack_create(struct incstack_runtime *runtime, uintptr_t low,
				       uintptr_t high, struct incstack_stack **stack);

/* Creates the state of a stack that only the embedder can walk. The functions of *walker walk it,
 * and each gets `identity`; the table must last as long as the state. Frames are named by numbers
 * in no particular order (INCSTACK_FRAME_* and embedder.h). incstack_stack_returned reports
 * returns. The mode is FULL if the runtime's mode is FULL, else EMBEDDER. On such a stack top.sp
 * names the top frame, top.slot is ignored, and a sample with INCSTACK_TOP_INTERRUPTED is refused.
 * Functions that deal with return slots or stack addresses (slot_write, unwinding_to, stack_moved)
 * return INCSTACK_EINVAL.
 * Errors: EINVAL, also if the walker lacks caller, arm or disarm, or has a wrong size; ENOMEM,
 * ELIMIT.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_stack_create_embedder(struct incstack_runtime *runtime,
						const struct incstack_stack_walker *walker,
						void *identity, struct incstack_stack **stack);

/* Restores every return slot that still holds one of the library's thunks, drops the traces that
 * were not retrieved and frees the state. Null is allowed. Nothing happens, and the state stays, if
 * another thread calls it, or while an operation on the stack is in progress.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_stack_destroy(struct incstack_stack *stack);

/* Destroys the state of a stack whose memory may be gone. No slot is read or written.
 * No code may run on that stack again. Null is allowed.
 * Thread: any, while no thread runs on it. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_stack_abandon(struct incstack_stack *stack);

/* Reports that the memory of the stack has a new use: a new fiber begins in it. No slot is
 * read or written. None of the earlier frames may run again. The traces stay; those that
 * were open are truncated.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_forget(struct incstack_stack *stack);

/* Makes the calling thread the owner. Call it when a fiber resumes on this thread, or when
 * the caller holds the thread that runs on the stack. Errors: EINVAL.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_set_owner(struct incstack_stack *stack);

/* Changes how the library notices returns, even while traces are open. It completes the
 * open traces as far as the reserved memory allows, truncates and counts the others, then
 * lifts the barriers. Errors: EINVAL, ETHREAD, EBUSY.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_set_mode(struct incstack_stack *stack, enum incstack_mode mode);

/* ---- sample and retrieve --------------------------------------------------- */

/* The frame that is the top of a trace. The trace does not show younger frames. */
struct incstack_top {
	/* The position of the frame. Pass a return address exactly as its slot holds it, even
	 * if it is a barrier's thunk. So the function that samples may be tail-called. */
	uintptr_t pc;
	uintptr_t sp;      /* its stack pointer */
	uintptr_t fp;      /* its frame pointer register */
	uintptr_t slot;    /* its return slot; 0: found by its rule */
	uint32_t flags;    /* INCSTACK_TOP_* */
	uint32_t reserved; /* not used; 0 */
};

/* The flags of a top. */
enum {
	INCSTACK_TOP_EXACT = 1u << 0, /* pc is the current pc (a poll), not a return address */
	/* The caller is a signal handler that interrupted the frame at pc (implies EXACT).
	 * The frame's own return slot is not patched, and the embedder is not called. */
	INCSTACK_TOP_INTERRUPTED = 1u << 1,
	/* On a stack that the embedder walks: as INCSTACK_RULE_DECODE_NOW. */
	INCSTACK_TOP_DECODE_NOW = 1u << 2,
	/* Set by the embedder's `interrupted` only (see embedder.h): the frame stays on the stack
	 * until the queue is drained. */
	INCSTACK_TOP_STAYS = 1u << 3,
	/* Set by the embedder's `interrupted` only: the frame is about to return, and its caller
	 * stays on the stack until the queue is drained. */
	INCSTACK_TOP_CALLER_STAYS = 1u << 4,
};

/* Takes a sample: starts a trace whose top is *top. `id` and `weight` are the caller's;
 * the trace carries them unchanged. A refused sample is counted.
 * A top outside [low, high) is on another stack, for example a signal stack. The walk
 * patches nothing there. It continues as usual where it reaches this stack.
 * Errors: EINVAL, ETHREAD, EBUSY, EUNWIND; EROOM: call incstack_stack_reserve first. On a stack
 * that the embedder walks, reserve does not know how many frames there are: take samples with
 * incstack_stack_sample_at_poll, or reserve more after an EROOM.
 * Algorithm: ICPE'15 section 5.2, with the barrier at the caller that `distance` says. An
 * adaptive distance uses ski rental (Karlin et al. 1988): a barrier is planted once the
 * walking that it would have saved equals its cost.
 * Thread: owner. Signal: with INCSTACK_TOP_INTERRUPTED. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_sample(struct incstack_stack *stack, uint64_t id, uint64_t weight,
				       const struct incstack_top *top);

/* As incstack_stack_sample, but first makes room if little is left. For polls and other places
 * where the caller may allocate: samples taken in this way need no incstack_stack_reserve, however
 * many frames a stack has that the embedder walks.
 * Errors: as incstack_stack_sample and incstack_stack_reserve; ELIMIT: the traces take up
 * stack_bytes, so retrieve them first.
 * Thread: owner. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_stack_sample_at_poll(struct incstack_stack *stack, uint64_t id,
					       uint64_t weight, const struct incstack_top *top);

/* Makes room for at least `bytes` of traces, and for all frames that the stack has now, so
 * that returns can complete the open traces without an allocation (up to stack_bytes). The
 * frames of a stack that the embedder walks are not counted: incstack_stack_returned allocates.
 * It also keeps thunks available. The text has 4095, for all stacks of the process. When
 * these run short, reserve, create and retrieve make 4096 more at a time, up to 266239.
 * They stay until the process ends. Errors: EINVAL, ETHREAD, EBUSY, ELIMIT, ENOMEM.
 * Thread: owner. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_stack_reserve(struct incstack_stack *stack, size_t bytes);

/* Returns how many bytes are left, as reserve counts them; 0 for null. It is faster than a
 * reserve that has nothing to do, so it can be called before each sample.
 * Thread: owner. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API size_t incstack_stack_room(const struct incstack_stack *stack);

/* The record of one frame at one point in time. 32 bytes. */
struct incstack_frame_object {
	const struct incstack_frame_object *parent; /* the caller; null: see flags */
	uint64_t function; /* the embedder's identifier; the pc if INCSTACK_OBJECT_RAW */
	uintptr_t address; /* the frame address: the frame's stack pointer at its call */
	int32_t position;  /* where it stands in the function; -1: unknown */
	uint32_t flags;    /* INCSTACK_OBJECT_* */
};

/* The flags of a frame object. */
enum {
	INCSTACK_OBJECT_FILLED = 1u << 0,    /* captured; otherwise a skeleton */
	INCSTACK_OBJECT_EXACT = 1u << 1,     /* function (undecoded) is an exact pc */
	INCSTACK_OBJECT_VIRTUAL = 1u << 2,   /* its callee is inlined into it and has its address */
	INCSTACK_OBJECT_BASE = 1u << 3,      /* the outermost frame: the trace is complete */
	INCSTACK_OBJECT_TRUNCATED = 1u << 4, /* the callers of this frame are unknown */
	INCSTACK_OBJECT_SIGNAL = 1u << 5,    /* the kernel's signal-return frame */
	INCSTACK_OBJECT_RAW = 1u << 6,       /* function is still the pc: there is no decode, or the
	                                      * position was gone before it could be read */
	INCSTACK_OBJECT_INTERRUPTED = 1u << 7, /* a top that a signal interrupted */
	INCSTACK_OBJECT_LATE = 1u << 12, /* the top of a trace from a queue; with INTERRUPTED it
	                                  * is the frame that was interrupted, otherwise the
	                                  * trace is biased (docs/signals.md) */
	INCSTACK_OBJECT_POINTER = 1u << 13, /* its code has no unwind rule: its caller was found by the frame
	                                     * pointer (INCSTACK_RULE_BY_POINTER). With TRUNCATED the
	                                     * frame pointer led nowhere. */
	INCSTACK_OBJECT_GAP = 1u << 9,   /* parent is a caller, but not the direct one; never
	                                      * set after retrieve (see incstack_stack_tree) */
};

/* One trace: what one sample has captured. */
struct incstack_trace {
	const struct incstack_trace *next;       /* the next younger sample */
	uint64_t id;                             /* as passed to incstack_stack_sample */
	uint64_t weight;                         /* as passed to incstack_stack_sample */
	const struct incstack_frame_object *top; /* the youngest frame of the trace */
	/* The youngest object that existed before the sample; null if there is none. It and its
	 * callers were active at an earlier sample. So was the frame right above it: its position
	 * may be new, but its activation is not (Whaley 2000, section 5.2: old activations).
	 * Everything above that frame is new. With barrier distance 1 this is exact. With another
	 * distance, some frames above it may also be old. */
	const struct incstack_frame_object *old;
};

/* The traces of one retrieve, oldest first, and everything they point to. */
struct incstack_tree {
	const struct incstack_trace
		*traces;    /* the oldest; `next` leads to the others; null: none */
	uint64_t count;     /* traces */
	uint64_t objects;   /* frame objects */
	uint64_t truncated; /* frame objects whose callers are unknown */
};

/* Completes the open traces and hands over all traces in *tree. The stack then has none.
 * Barriers and known callers stay for the next samples. The tree has its own copies and
 * belongs to the caller until it releases the tree.
 * Frames that were popped without notice are detected only if the caller runs on the
 * stack. A caller that holds the stack from outside must take a sample after such a pop.
 * The memory may exceed stack_bytes, because all samples are completed and decoded.
 * Errors: EINVAL, ETHREAD; EBUSY, also from inside decode, counted; ENOMEM: no trace is
 * lost, call it again. Algorithm: ICPE'15 section 5.3; here the barriers stay.
 * Thread: owner. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_stack_retrieve(struct incstack_stack *stack, struct incstack_tree **tree);

/* Frees a tree; null is allowed.
 * Thread: any, one at a time. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_tree_release(struct incstack_tree *tree);

/* Returns the tree that the next retrieve will hand over, while it grows; null for null.
 * The pointer is valid until the next retrieve. Only the field `traces` is set: it leads
 * to everything sampled since the last retrieve. Each pointer is stored after what it
 * points to is complete. All of it lies in memory of allocate_traces. So another process
 * that shares this memory can read the traces at any time, even after this process died.
 * That reader must expect three kinds of unfinished objects: one without FILLED is a
 * skeleton; one with GAP has callers before its parent that were not walked yet; one that
 * lacks a parent, BASE and TRUNCATED was being written.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API const struct incstack_tree *incstack_stack_tree(const struct incstack_stack *stack);

/* ---- the contract with code that walks or changes the stack ---------------- */

/* Returns the true content of a return slot: what it would hold without the library. 0 for
 * a null or misaligned address. Meant for walkers, debuggers and crash handlers. It needs
 * no stack state and takes constant time, because the thunk in the slot names its barrier.
 * Thread: any, on a stack that does not run. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API uintptr_t incstack_slot_read(const uintptr_t *slot);

/* Changes where a frame will return to. If the slot has a barrier, the barrier stays.
 * The recorded position of the caller does not change (Gnedt 2014, section 3.3).
 * Errors: EINVAL, ETHREAD, EBUSY; ERANGE: the slot is not in the stack.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_slot_write(struct incstack_stack *stack, uintptr_t *slot,
					   uintptr_t resume);

/* Reports that the frames below address sp (the younger ones) will be popped without
 * returning, by an exception or longjmp. The open traces are captured down to sp. If the
 * caller is a signal handler that interrupted an operation on the stack, that operation
 * ends, and what it had open is truncated. retrieve and set_mode must not be ended in this
 * way: block signals around them.
 * Errors: EINVAL, ETHREAD, EBUSY; ERANGE: sp is not in [low, high].
 * Algorithm: Gnedt 2014, section 3.3 (exception handling).
 * Thread: owner. Signal: right before it jumps out. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_unwinding_to(struct incstack_stack *stack, uintptr_t sp);

/* Reports, on a stack that the embedder walks, that control is about to return to `frame`,
 * which `arm` put a barrier on, or that `frame` is about to be popped without a return (an
 * exception). Its position must still be that of the call, and its callers must be
 * unchanged. The barrier is removed, and disarm is not called for it: clear your own mark
 * before the call. The library may arm another frame further out before this function returns.
 * Errors: EINVAL, ETHREAD, EBUSY; ERANGE: the frame had no barrier; ENOMEM: the open traces are
 * truncated at `frame` or beyond.
 * Thread: owner. Signal: no. Allocates: may, even beyond stack_bytes. Blocks: never. */
INCSTACK_API int incstack_stack_returned(struct incstack_stack *stack, uintptr_t frame);

/* Reports that the return slot of one frame moved (on-stack replacement). The caller must
 * have copied the content already. The slots of its callees do not move. On a stack that
 * the embedder walks, the arguments are the old and the new name of the frame; its barrier
 * moves with it. Errors: EINVAL, ETHREAD, EBUSY; ERANGE: a slot is not in the stack.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_frame_moved(struct incstack_stack *stack, uintptr_t old_slot,
					    uintptr_t new_slot);

/* Reports that the stack was copied. Its highest address is now new_high, and the distance
 * of every slot from it is unchanged. Errors: EINVAL, ETHREAD, EBUSY.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_moved(struct incstack_stack *stack, uintptr_t new_low,
				      uintptr_t new_high);

/* Reports that the code in [low, high) is about to be unloaded. Call it before the code
 * is unloaded, once for each stack. It forgets the rules for that code in all stacks of the
 * runtime. If `stack` is not null, it also decodes every object captured there. A walk
 * through the code after the call learns its rules again. If such a walk can happen, call this
 * function once more, with a null stack, after the code was unloaded and before other code runs in
 * its place: before the next dlopen or mmap of code, or while these cannot happen. An embedder that
 * does not know the bounds passes 0 and UINTPTR_MAX. libc also unloads code by itself (iconv, name
 * services) and does not report it.
 * The runtime also remembers that an address has no rule. So a table without
 * find_rule_quickly needs this call when code appears at an address that samples may have
 * met before. Errors: EINVAL, ETHREAD, EBUSY; ENOMEM: the code must stay until another
 * call has succeeded.
 * Thread: owner of stack. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_runtime_code_unloading(struct incstack_runtime *runtime,
						 struct incstack_stack *stack, uintptr_t low,
						 uintptr_t high);

/* ---- observation ------------------------------------------------------------ */

/* Counters of one stack since its creation. */
struct incstack_stats {
	size_t size;                /* sizeof(struct incstack_stats), set by the caller */
	uint64_t samples;           /* samples taken */
	uint64_t walked;            /* frames walked by rules */
	uint64_t shared;            /* samples that met known callers, so their traces have `old` */
	uint64_t returns;           /* returns intercepted */
	uint64_t planted;           /* barriers planted */
	uint32_t mode;              /* enum incstack_mode in force */
	uint32_t distance;          /* barrier distance in force, at least 1 */
	uint64_t lost_limit;        /* samples refused: no room was reserved */
	uint64_t lost_busy;         /* samples refused: another operation in progress */
	uint64_t lost_unwind;       /* samples refused: no rule for the top frame */
	uint64_t lost_retrieve;     /* traces dropped with the stack before retrieve */
	uint64_t truncated;         /* objects whose callers became unknown */
	uint64_t unwound;           /* barriers passed by an unwinder or unwinding_to */
	uint64_t stale;             /* barriers whose frames were popped without notice */
	uint64_t no_thunk;          /* barriers not planted, because there was no thunk or arm
	                           * refused; the walk continued instead */
	uint64_t pools;             /* pools of thunks made on behalf of this stack */
	uint64_t pools_refused;     /* attempts to make a pool that failed: no memory, no executable
	                           * memory, or no unwinder to register it with; no_thunk counts
	                           * the consequences */
	uint64_t rules_unkept;      /* unwind rules, of the whole runtime, that a sample or a return
	                           * looked up but had no room to cache, so they are looked up
	                           * again; reserve and retrieve make room */
	uint64_t foreign_unwinders; /* exceptions of an unwinder that the library cannot work
	                           * with, for example one linked statically into a plugin; the
	                           * barriers were lifted and the mode became validate */
	uint64_t revived;           /* returns through barriers that were assumed gone: the program
	                           * copies stacks. After eight of them in the whole runtime
	                           * nothing more is patched: each stack in mode patch changes
	                           * to validate at its next reserve or retrieve */
};

/* Copies the counters to *stats. Errors: EINVAL.
 * Thread: owner, or any while no operation is in progress. Signal: no.
 * Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_stats(const struct incstack_stack *stack,
				      struct incstack_stats *stats);

/* Returns 1 if exceptions of the unwinder whose code contains `code` can pass patched
 * frames, else 0. An unwinder cannot if it does not export the functions of the Itanium
 * C++ ABI, for example because it is linked statically into its user, or if thunks were
 * made at run time and were not registered with it. Before such an unwinder walks, lift the
 * barriers with incstack_stack_set_mode.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_unwinder_known(uintptr_t code);

INCSTACK_END_C

#endif
