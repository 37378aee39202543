/* SPDX-License-Identifier: MIT
 *
 * Incremental stack tracing for interpreters whose frames lie on the heap.
 *
 * This part is small and portable: any C11 compiler, 32 or 64 bits, no function of libc but memcpy
 * and memset. It is the library incstack_heap, and a part of incstack. Six calls matter:
 *
 *     incstack_heap_create         once: how to walk, how to mark a frame, where memory comes from
 *     incstack_heap_stack_create   for each stack of frames: a thread, or a coroutine
 *     incstack_heap_stack_sample   at a poll: records the frames that are new since the last sample
 *     incstack_heap_stack_returned when a function returns to a frame that has a mark
 *     incstack_heap_stack_unwinding_to when an error is about to pop frames
 *     incstack_heap_stack_retrieve hands over the traces, until incstack_heap_tree_release
 *
 *          youngest  [eval]     a sample walks from here ...
 *                    [call]
 *                    [eval] *   ... to the first frame with a mark. Its callers are known, because
 *                    [apply]    none of them can have run since then.
 *          outermost [main]
 *
 * A mark is a bit in a frame of the interpreter. Before control returns to a frame with a mark, the
 * interpreter clears the bit and calls incstack_heap_stack_returned. The library then marks a frame
 * further out. A sample that meets no mark sets one after a few frames, and ends there: its trace is open.
 * The callers are captured later, when the mark is reported, or at the latest by retrieve.
 *
 * A trace is a chain of frame objects. Traces share the objects of frames from the youngest mark outwards; the
 * frames before it get new objects in each sample (Gnedt 2014, chapter 3; Hofer, Gnedt, Mössenböck,
 * ICPE'15, section 5). There is no limit of depth.
 *
 * Rules that hold for every call:
 *   Thread     A stack may be used on any thread, by one call at a time: the embedder serializes.
 *              So nothing has to be done when a stack moves to another thread. Different stacks of
 *              one heap may be used at the same time if `memory` allows it. Creating and
 *              destroying stacks of one heap is serialized by the embedder, too.
 *   Signal     No function may be called in a signal handler, except those of a trigger.
 *   Allocates  "may": it may call the embedder's `memory`.
 *   Blocks     No function waits for anything.
 * sample, trace, retrieve, returned, unwinding_to and lift call `walk` and `mark`; no other function does. The
 * frames that they ask for must be there then, with all that `walk` reads. So a collector calls retrieve or
 * lift before it frees what frames that are still to be captured refer to.
 * Inside the embedder's functions, calls for the same stack fail with INCSTACK_EBUSY. A function
 * returns 0 on success and a negative INCSTACK_E* on failure, unless stated otherwise.
 */
#ifndef INCSTACK_HEAP_H
#define INCSTACK_HEAP_H

#include <stddef.h>
#include <stdint.h>
#if !defined(__GNUC__) && !defined(__cplusplus)
#include <stdatomic.h>
#endif

#include <incstack/error.h>

INCSTACK_BEGIN_C

/* ---- what the embedder provides ------------------------------------------------------- */

/* A frame, as `walk` describes it. */
struct incstack_heap_frame {
	uint64_t function; /* the embedder's identifier of the function */
	/* Names the activation while it lives; never 0 or INCSTACK_HEAP_UNKNOWN. For example its address;
	 * or, if frames lie in an array that may move, its index in the array plus 1. */
	uintptr_t name;
	uint32_t position; /* where it stands: an offset in its code, a line, any number */
	uint16_t flags;    /* INCSTACK_HEAP_* below */
	uint16_t kind;     /* any number: the library passes it on */
};

/* The flags of a frame. `walk` may set MARKED and the bits of OWN; the library sets the others. */
enum {
	INCSTACK_HEAP_MARKED = 1u << 0,    /* the mark that `mark` put on it is there */
	INCSTACK_HEAP_BASE = 1u << 3,      /* the outermost frame: the trace is complete */
	INCSTACK_HEAP_TRUNCATED = 1u << 4, /* the callers of this frame are unknown; counted */
	INCSTACK_HEAP_OWN = 0xf000u,       /* bits for the embedder: the library passes them on */
};

/* What `walk` returns if the caller of a frame is unknown: the trace is truncated there. */
#define INCSTACK_HEAP_UNKNOWN UINTPTR_MAX

/* How the library learns that frames were popped. */
enum incstack_heap_mode {
	/* The embedder has a place for a mark in each frame and reports returns to marked frames. */
	INCSTACK_HEAP_BARRIER = 0,
	/* The embedder has no place for a mark. Each sample walks the whole stack and compares it
	 * with the sample before, from the youngest frame of the shorter of the two on. The oldest
	 * frames that have equal names, functions and positions keep their objects. If a frame was
	 * popped and another one with the same name, function and position took its place, the two
	 * cannot be told apart and share an object. The trace is right all the same, because every
	 * frame was seen. Only `old` then calls an activation old that is new. */
	INCSTACK_HEAP_VALIDATE = 1,
	/* Each sample walks the whole stack and remembers nothing. */
	INCSTACK_HEAP_FULL = 2,
};

/* Flags of a heap. */
enum {
	/* Every call checks that its thread owns the stack (INCSTACK_ETHREAD), and that no other
	 * call for the stack is in progress on any thread (INCSTACK_EBUSY). The owner is the thread
	 * that created the stack or called incstack_heap_stack_adopt last. */
	INCSTACK_HEAP_CHECK_OWNER = 1u << 0,
};

/* The largest distance, in frames. */
#define INCSTACK_HEAP_DISTANCE_MAX 64

/* The embedder's three functions and the options of a heap. incstack_heap_create copies them. */
struct incstack_heap_options {
	size_t size;   /* sizeof(struct incstack_heap_options) */
	void *context; /* the first argument of each of the three functions */

	/* Describes the frame `name` in *frame and returns the name of its caller; 0 if it is the
	 * outermost one, INCSTACK_HEAP_UNKNOWN if its caller is not known, for example because it is the outermost
	 * one of a coroutine that nobody resumes. It must set `function`.
	 * `position`, `flags` and `kind` are 0 before, and the library sets `name`. In mode BARRIER
	 * it must set MARKED for each frame that has the mark, and for no other. `identity` is
	 * that of the stack. Never null. */
	uintptr_t (*walk)(void *context, void *identity, uintptr_t name,
			  struct incstack_heap_frame *frame);

	/* Sets the mark of a frame (on is 1) or clears it (0). Returns 0. A negative result means
	 * that this frame cannot have a mark; then its caller is tried. A new frame must start
	 * without a mark, also if it takes the memory of an old one. Null only if the mode is
	 * VALIDATE or FULL. */
	int (*mark)(void *context, void *identity, uintptr_t name, int on);

	/* Allocates `bytes` if `memory` is null: returns null on failure. Otherwise frees `memory`,
	 * which has `bytes`, and returns null. The memory is aligned as that of malloc. It must not
	 * run code of the interpreter, for example a collection that calls finalizers. Never null. */
	void *(*memory)(void *context, void *memory, size_t bytes);

	uint64_t memory_limit; /* for all memory of the heap, in bytes; 0: 1 GiB */
	uint32_t frame_limit;  /* a walk ends after so many frames, truncated; 1 to 63 count as 64; 0: 4,194,304 */
	uint32_t mode;         /* enum incstack_heap_mode */
	uint32_t distance;     /* which caller of the top gets the mark: 1 is the direct caller, as
				* in the papers; up to INCSTACK_HEAP_DISTANCE_MAX; 0: adaptive */
	uint32_t flags;        /* INCSTACK_HEAP_CHECK_OWNER, or 0 */
};

/* ---- heaps and stacks ------------------------------------------------------------------- */

struct incstack_heap;       /* the options, and what its stacks have in common */
struct incstack_heap_stack; /* one stack of frames: of a thread, or of a coroutine */

/* Creates a heap. Errors: EINVAL: a function is null, a number is out of range, or `size` is not
 * that of this header; ENOMEM; ELIMIT.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_heap_create(const struct incstack_heap_options *options,
				      struct incstack_heap **heap);

/* Destroys the stacks that are left, and the heap; null is accepted. No call for any of its stacks may
 * be in progress. Trees that were retrieved stay valid. The last one that is released frees the heap's
 * memory, so `memory` must work until then.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_heap_destroy(struct incstack_heap *heap);

/* Creates the state of a stack: less than 512 bytes until its first sample. `identity` is passed to
 * `walk` and `mark`. Errors: EINVAL, ENOMEM, ELIMIT.
 * Thread: any, one at a time for a heap. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_heap_stack_create(struct incstack_heap *heap, void *identity,
					    struct incstack_heap_stack **stack);

/* Frees the state and its memory; null is accepted. Traces that were not retrieved are gone, and no counter has
 * them. No frame is touched, so the frames may be gone. A mark that is left on a frame is harmless: a report of
 * it has nowhere to go. The owner is not checked. While a call for the stack is in progress, nothing is
 * done (stats.busy).
 * Thread: any, one at a time for a heap. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_heap_stack_destroy(struct incstack_heap_stack *stack);

/* The calling thread becomes the owner of the stack. Only needed with INCSTACK_HEAP_CHECK_OWNER.
 * Errors: EINVAL; EBUSY: a call for the stack is in progress.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_heap_stack_adopt(struct incstack_heap_stack *stack);

/* ---- traces ------------------------------------------------------------------------------ */

/* The record of one frame at one point in time. */
struct incstack_heap_object {
	const struct incstack_heap_object *parent; /* the caller; null: see frame.flags */
	struct incstack_heap_frame frame;          /* the frame as it was then */
};

/* One trace: what one sample has captured. */
struct incstack_heap_trace {
	const struct incstack_heap_trace *next; /* the next younger sample */
	const struct incstack_heap_object *top; /* the youngest frame of the trace */
	/* The youngest object that existed before the sample; null if there is none. Younger objects may be of
	 * activations that an earlier trace had, too. It and its
	 * callers were in an earlier trace of the stack, or in one that was lost. The chain from `top` leads to it, unless an
	 * object before it is truncated or frames were popped without a report (stats.stale). */
	const struct incstack_heap_object *old;
	uint64_t id;     /* as passed to sample */
	uint64_t weight; /* as passed to sample */
};

/* The traces of one retrieve, and everything they point to. Nothing in it changes. */
struct incstack_heap_tree {
	const struct incstack_heap_trace *traces; /* the oldest; null: none */
	uint64_t count;                           /* traces */
};

/* Takes a sample of the stack whose youngest frame is `top`: makes a trace with this id and weight. A top that has a
 * mark is taken for a return that was not reported: its mark is cleared, and counts as stale.
 * The frame limit or a walk in a circle truncates the trace, and is counted. After ENOMEM and ELIMIT
 * (memory_limit) there is no trace, and the stack is as before (stats.lost).
 * Errors: EINVAL, also for a top of 0 or with a mark that cannot be cleared; ETHREAD, EBUSY, ENOMEM, ELIMIT.
 * Algorithm: ICPE'15 section 5.2, "Taking a sample".
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_heap_stack_sample(struct incstack_heap_stack *stack, uintptr_t top,
					    uint64_t id, uint64_t weight);

/* The same, but hands out the finished trace at once: *object is its top, and no trace is kept for
 * retrieve. It is the fastest way for an embedder that uses each trace at once. The objects are valid
 * until the next call for the stack, of any function. Errors: as incstack_heap_stack_sample.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_heap_stack_trace(struct incstack_heap_stack *stack, uintptr_t top,
					   const struct incstack_heap_object **object);

/* Completes the open traces and hands over all traces of the stack, which then has none. Marks and
 * known callers stay for the next samples. `top` is the youngest frame that the stack has now; 0 if it
 * has none. If frames with marks were popped without a report, this is noticed here: the traces
 * that needed them are truncated (stats.stale, stats.truncated). The tree belongs to the caller
 * until it releases the tree. Trees may share objects. After an error *tree is as before.
 * Errors: EINVAL, ETHREAD, EBUSY; ENOMEM, ELIMIT: no trace is lost, call it again.
 * Algorithm: ICPE'15 section 5.3; here the barriers stay.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_heap_stack_retrieve(struct incstack_heap_stack *stack, uintptr_t top,
					      const struct incstack_heap_tree **tree);

/* Frees a tree; null is accepted. If this is a call for the stack that has made the tree, pass it as `stack`: then no
 * atomic operation is needed. Otherwise pass null. The stack may then be destroyed, or in use on another thread
 * at that time, if `memory` allows that. After an error the tree was not released; there is none if `stack` is null.
 * Errors: ETHREAD, EBUSY.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_heap_tree_release(const struct incstack_heap_tree *tree,
					    struct incstack_heap_stack *stack);

/* ---- what the interpreter reports --------------------------------------------------------- */

/* Reports that the frame `name`, which has a mark, becomes the youngest one: control returns to it, or an error is
 * about to pop it. Clear the mark before the call. The position of the frame must still be that of its call, and
 * its callers unchanged; the frames before it may be gone. The library may mark a frame further out. A tail call
 * needs no report: the frame that it replaces was the youngest one, which has no mark.
 * Errors: EINVAL, ETHREAD, EBUSY; ERANGE: the stack knows of no such mark, which is harmless;
 * ENOMEM, ELIMIT: traces are truncated at this frame (stats.truncated).
 * Algorithm: ICPE'15 section 5.2, "Intercepting a return".
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_heap_stack_returned(struct incstack_heap_stack *stack, uintptr_t name);

/* Reports that all frames from `top`, the youngest, to the one before `name` are about to be popped at once, by an
 * error that `name` handles. All these frames and `name` must still be there to be walked, and the position of `name`
 * must still be that of its call: jump to the handler after this call. Their marks and that of `name` are
 * cleared. So the same call serves where the frames are set aside, to run again later: for example before a
 * coroutine yields whose frames are on the stack of their resumer. It walks the frames that are popped, at most to
 * the first one with a mark, and from there either the others or those from `name` to the first one with
 * a mark, whichever are fewer. It does nothing in modes VALIDATE and FULL. For an error that nobody handles, call
 * incstack_heap_stack_lift instead. Errors: EINVAL, ETHREAD, EBUSY; ENOMEM, ELIMIT: traces are truncated.
 * Algorithm: Gnedt 2014, section 3.3 (exception handling).
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_heap_stack_unwinding_to(struct incstack_heap_stack *stack,
						  uintptr_t top, uintptr_t name);

/* Returns the name of the n-th youngest frame with a mark, 0 being the youngest; 0 if there are not so
 * many. An interpreter that can tell from a name whether the frame is popped need not scan its frames:
 *     while ((name = incstack_heap_stack_marked(stack, 0)) && is_popped(name))
 *             clear the mark, incstack_heap_stack_returned(stack, name);
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uintptr_t incstack_heap_stack_marked(const struct incstack_heap_stack *stack,
						  size_t n);

/* Completes the open traces, clears all marks and forgets what is known. `top` is the youngest frame that the stack
 * has now. If it is 0, the frames do not exist any more, for example because their coroutine was collected: no frame
 * is touched, and open traces are truncated, which may be nearly all. To keep them whole, call this function or
 * retrieve while the frames are still there. The next sample marks again, and its frames may be
 * others, or have other names: call this before a collector moves frames whose names are their addresses.
 * Errors: EINVAL, ETHREAD, EBUSY; ENOMEM, ELIMIT: the marks are still there.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_heap_stack_lift(struct incstack_heap_stack *stack, uintptr_t top);

/* Counters of one stack since its creation. */
struct incstack_heap_stats {
	size_t size;        /* sizeof(struct incstack_heap_stats), set by the caller */
	uint64_t samples;   /* samples taken, also by incstack_heap_stack_trace */
	uint64_t walked;    /* frames that `walk` described */
	uint64_t shared;    /* samples that met known callers */
	uint64_t returns;   /* marks that were reported, or found by unwinding_to */
	uint64_t planted;   /* marks set */
	uint64_t refused;   /* marks not set, because `mark` refused or there was no memory */
	uint64_t lost;      /* samples refused for lack of memory */
	uint64_t busy;      /* calls refused: another call for the stack was in progress */
	uint64_t truncated; /* objects whose callers became unknown */
	uint64_t endless;   /* of these: walks that ended at the frame limit or went in a circle */
	uint64_t stale;     /* marks whose frames were popped or ran on without a report */
	uint64_t copies;    /* times that the known objects were copied to new memory */
	uint32_t distance;  /* the distance in force; 0 if the mode has no marks */
	uint32_t marks;     /* marks that are set now */
};

/* Copies the counters to *stats. Errors: EINVAL.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_heap_stack_stats(const struct incstack_heap_stack *stack,
					   struct incstack_heap_stats *stats);

/* C++ has no _Atomic: there, the trigger needs a compiler that knows the builtins of GNU. */
#if defined(__GNUC__) || !defined(__cplusplus)

/* ---- when to sample: a trigger -------------------------------------------------------------- */

#if defined(__GNUC__)
#define INCSTACK_HEAP_ATOMIC volatile /* of a word that threads and signal handlers share */
/* Reads the word of a trigger. */
#define INCSTACK__HEAP_LOAD(trigger) __atomic_load_n(&(trigger)->word, __ATOMIC_RELAXED)
/* Replaces the word of a trigger if it is still `old`. */
#define INCSTACK__HEAP_SWAP(trigger, old, new) \
	__atomic_compare_exchange_n(&(trigger)->word, old, new, 0, __ATOMIC_ACQ_REL, \
				    __ATOMIC_RELAXED)
#else
#define INCSTACK_HEAP_ATOMIC _Atomic
#define INCSTACK__HEAP_LOAD(trigger) atomic_load_explicit(&(trigger)->word, memory_order_relaxed)
#define INCSTACK__HEAP_SWAP(trigger, old, new) \
	atomic_compare_exchange_strong_explicit(&(trigger)->word, old, new, memory_order_acq_rel, \
						memory_order_relaxed)
#endif

/* A request for samples, made for example by the handler of a timer's signal, and seen by the polls of
 * one or many threads. All zero: no request. The upper half of the word is the number of the
 * request, the lower half how many of its tickets are left. The first polls draw the tickets, at
 * most one for each thread: a partial safepoint (ICPE'15, section 4). A thread that does not poll
 * draws none; for threads that wait, and for completion, see safepoint.h. */
struct incstack_heap_trigger {
	/* Written only by the functions below. A poll that cannot call them, in generated code or before its
	 * owner is known, may load the word, without any order: if its lower 16 bits are 0, no tickets are left. */
	INCSTACK_HEAP_ATOMIC uint32_t word;
};

/* Starts a new request for this many tickets (at most 65,535). Returns how many of the request before
 * were not drawn; they are void. A timer that finds the ticket of its last tick there may add one to
 * the weight of the next sample.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
static inline uint32_t incstack_heap_trigger_request(struct incstack_heap_trigger *trigger,
						     uint32_t tickets)
{
	uint32_t old = INCSTACK__HEAP_LOAD(trigger), left = tickets < 0xffffu ? tickets : 0xffffu;
	while (!INCSTACK__HEAP_SWAP(trigger, &old, ((old >> 16) + 1) << 16 | left))
		continue;
	return old & 0xffffu;
}

/* Draws a ticket: returns 1 if the caller got a ticket and should sample itself. If no tickets are left, it is
 * one load and a compare: call it at each poll. *drawn, at first 0, is the number
 * of the request from which its owner drew last. Each owner draws at most one ticket of a request. The owner is an
 * interpreter, and *drawn moves with it between threads of the system. If many fibers run on few threads, each
 * thread is an owner. Numbers repeat after 65,536 requests: an owner that did not poll for so long misses a request.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
static inline int incstack_heap_trigger_draw(struct incstack_heap_trigger *trigger, uint32_t *drawn)
{
	uint32_t word = INCSTACK__HEAP_LOAD(trigger);
	while ((word & 0xffffu) && (word >> 16 | 0x10000u) != *drawn)
		if (INCSTACK__HEAP_SWAP(trigger, &word, word - 1)) {
			*drawn = word >> 16 | 0x10000u;
			return 1;
		}
	return 0;
}

#endif

INCSTACK_END_C

#endif
