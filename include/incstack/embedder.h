/* SPDX-License-Identifier: MIT
 *
 * The functions that an embedder (a program or virtual machine that uses the
 * library) provides, in groups: what it knows about code (unwind rules, and what a
 * position means), where memory comes from, and what may be called in a signal
 * handler. A stack that only the embedder can walk has a table of its own. The core
 * calls no other function of the host.
 */
#ifndef INCSTACK_EMBEDDER_H
#define INCSTACK_EMBEDDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <incstack/version.h>

INCSTACK_BEGIN_C

/* A frame, as a walk sees it. `sp` is the frame address: the value of the stack
 * pointer in this frame at its call (for an exact top: at its pc). */
struct incstack_frame {
	uintptr_t pc;      /* its position: a return address, or with EXACT its current pc */
	uintptr_t sp;      /* the frame address */
	uintptr_t fp;      /* its frame pointer register */
	uint32_t flags;    /* INCSTACK_FRAME_* */
	uint32_t reserved; /* not used; 0 */
};

/* The flags of a frame. The `caller` of a walker (below) sets the last two. */
enum {
	INCSTACK_FRAME_EXACT = 1u << 0,      /* pc is the current pc, not a return address */
	INCSTACK_FRAME_SIGNAL = 1u << 1,     /* the kernel's signal-return frame */
	INCSTACK_FRAME_ARMED = 1u << 2,      /* the barrier that `arm` put on it is still there */
	INCSTACK_FRAME_DECODE_NOW = 1u << 3, /* as INCSTACK_RULE_DECODE_NOW */
};

/* The kinds of unwind rules. A rule tells how to go from a frame to its caller.
 *
 *   CFA          = sp + cfa_offset | fp + cfa_offset | *(fp + cfa_offset)
 *   return slot  = CFA - ra_offset
 *   caller's sp  = CFA,  caller's pc = *slot
 *   caller's fp  = *(CFA - fp_offset), or unchanged where fp_offset is 0;
 *                  *(fp - fp_offset) where the CFA is *(fp + cfa_offset)
 *
 * Offsets are in bytes, multiples of 8. */
enum incstack_rule_kind {
	/* The caller is unknown: the trace ends as truncated. A return slot that leads to code
	 * with this rule is never patched. */
	INCSTACK_RULE_NONE = 0,
	INCSTACK_RULE_SP,       /* CFA from the stack pointer */
	INCSTACK_RULE_FP,       /* CFA from the frame pointer */
	INCSTACK_RULE_FP_DEREF, /* CFA stored at an offset from the frame pointer */
	INCSTACK_RULE_SIGNAL,   /* the kernel's signal frame: registers from its ucontext */
	INCSTACK_RULE_END,      /* the outermost frame: the walk ends, complete */
};

/* An unwind rule; enum incstack_rule_kind says what its offsets mean. */
struct incstack_rule {
	uint32_t kind;      /* enum incstack_rule_kind */
	int32_t cfa_offset; /* from the register to the CFA, or to the word that holds it */
	uint16_t ra_offset; /* how far the return slot lies below the CFA; usually 8 */
	uint16_t
		fp_offset; /* how far the caller's frame pointer lies below the CFA; 0: unchanged */
	uint32_t flags;    /* INCSTACK_RULE_* below */
};

/* The flags of a rule. */
enum {
	/* The frame itself holds its position (an interpreter). So decode is called
	 * when the frame is captured, not at retrieve. A sample in a signal handler
	 * cannot call decode; a frame that it captures stays INCSTACK_OBJECT_RAW. */
	INCSTACK_RULE_DECODE_NOW = 1u << 0,
	/* Returns into this code are never intercepted, because something reads, moves
	 * or copies its frames and their return addresses. */
	INCSTACK_RULE_NO_BARRIER = 1u << 1,
	/* The function changes its own return address and its saved registers before it ends. The
	 * functions of an unwinder that jump to a landing pad do this. A native sample is refused
	 * if the signal interrupted this function, or a function that it called. */
	INCSTACK_RULE_RETURN_CHANGES = 1u << 2,
	/* The rule is a guess: no unwind table describes the code, which may keep a frame pointer. A step by
	 * such a rule is made only inside the bounds of the stack, and only if code.returns_into says that the
	 * caller's pc can be one. It is never patched, and not cached. */
	INCSTACK_RULE_BY_POINTER = 1u << 3,
};

/* One frame at the level of the source. A physical frame decodes to one virtual
 * frame, or with inlining to several, innermost first. */
struct incstack_virtual_frame {
	uint64_t function; /* the embedder's identifier of the function */
	int32_t position;  /* where it stands in the function, as a number of the embedder, for
			    * example the offset of a bytecode, or a line; -1: unknown */
	uint32_t kind;     /* enum incstack_frame_kind; only the frame iterator passes it on. A
			    * profile learns kinds with the names (profile.h). */
};

/* How a frame runs. decode may set the kind of the outermost virtual frame of a physical frame.
 * The frames that are inlined into it always have the kind INLINED. */
enum incstack_frame_kind {
	INCSTACK_KIND_UNKNOWN = 0, /* decode did not set it, or could not be called */
	INCSTACK_KIND_INTERPRETED, /* an interpreter executes it */
	INCSTACK_KIND_COMPILED,    /* the embedder's compiler has made its code */
	INCSTACK_KIND_INLINED,     /* it has no physical frame of its own */
	INCSTACK_KIND_WRAPPER,     /* a stub or native method between the embedder's code and C */
	INCSTACK_KIND_C,           /* C, C++ and the like; every frame if the table has no decode */
};

/* What a signal has interrupted, for `interrupted`. */
struct incstack_interruption {
	const void *ucontext; /* the third argument of the signal handler */
	void *identity;       /* of a stack that only the embedder can walk; otherwise null */
	uintptr_t low;        /* the lowest address of the stack; 0 if it is not known */
	uintptr_t high;       /* where the stack begins; 0 if that is not known */
};

struct incstack_top; /* incstack.h */

/* The maximum number of virtual frames that one physical frame decodes to. Those
 * beyond it, at the outer end, are dropped. */
#define INCSTACK_VIRTUAL_MAX 64

/* What the embedder knows about code. `decode` serves every kind of stack, the other members serve
 * machine stacks. Each function may be null. */
struct incstack_embedder_code {
	/* 1: every frame of a machine stack keeps a frame pointer, and the library follows it. Then
	 * find_rule must be null. If frame_pointers is 0 and find_rule is null, the runtime can have
	 * no machine stacks, and incstack_stack_create returns INCSTACK_EINVAL. */
	uint32_t frame_pointers;

	/* Finds the rule for a look-up address: the pc of an exact frame, or pc - 1 of
	 * a return address. Writes *rule and returns 0; a negative INCSTACK_E* means
	 * that the address has no rule. The result is cached until the code is
	 * unloaded, so the function is called once for an address, and again only if
	 * there was no room to keep the rule (stats.rules_unkept). It is called from a
	 * sample, from retrieve, or from a return whose rule is not cached (all
	 * registers are saved then). It is never called from a signal handler (see
	 * signals.find_rule): the next sample, retrieve or reserve outside of a handler
	 * looks up the rules that were missing there. */
	int (*find_rule)(void *context, uintptr_t address, struct incstack_rule *rule);

	/* As find_rule, but called before it, for rules that are cheap to find without a
	 * lock. Signals are not blocked during the call, as they are around find_rule,
	 * and a handler may jump out of it. If it fails, find_rule is called. It is
	 * called again for an address that had no rule. The frame iterator calls it in signal
	 * handlers, too, if signals.find_rule is null. */
	int (*find_rule_quickly)(void *context, uintptr_t address, struct incstack_rule *rule);

	/* Returns the logical pc of a frame whose return slot holds the address of a
	 * handler instead, for example a deoptimization handler; returns `pc` itself if
	 * there is no other. It is called for return addresses that find_rule refuses
	 * (for all, with frame_pointers), in the same places as find_rule. It cannot be
	 * called in a signal handler; there a trace ends at such an address, truncated. */
	uintptr_t (*logical_pc)(void *context, uintptr_t slot, uintptr_t pc);

	/* Turns a physical frame into 1..max virtual frames. Returns how many, or a
	 * negative INCSTACK_E*. With INCSTACK_RULE_DECODE_NOW it is called when the
	 * frame is captured; otherwise at retrieve, when the frame may be gone, and
	 * with frame->fp 0. Null: function = pc, position = -1. */
	int (*decode)(void *context, const struct incstack_frame *frame,
		      struct incstack_virtual_frame *out, int max);

	/* Registers code that was made at run time with the unwinder that throws the
	 * program's exceptions. `info` is a list of CIEs and FDEs as in .eh_frame,
	 * terminated by a zero word. It is valid until the process ends. A negative result
	 * means failure; the code is not used then. Null: __register_frame_info of
	 * libgcc, if the program has it. With neither function, no thunks are made
	 * beyond those in the text, because exceptions could not pass them. */
	int (*register_unwind_info)(void *context, const void *info, size_t bytes);

	/* Whether a call may return to this pc, to which a rule with INCSTACK_RULE_BY_POINTER has led: it is
	 * in code, behind a call. It may be called in a signal handler, too. Null: no step is made by such
	 * a rule. */
	bool (*returns_into)(void *context, uintptr_t pc);
};

/* Where memory comes from. Provide both functions of a pair, or neither. */
struct incstack_embedder_memory {
	/* Allocates memory; returns null on failure. Without this pair, malloc and free serve.
	 * Only functions marked "Allocates: may" call it. */
	void *(*allocate)(void *context, size_t bytes);

	/* Frees memory of allocate. `bytes` is the size that was passed to allocate. */
	void (*release)(void *context, void *memory, size_t bytes);

	/* Memory for frame objects and traces only, in pieces of chunk_bytes. An embedder can
	 * share this memory with another process, which reads the traces from there even after
	 * this process died (incstack_stack_tree). Without this pair, allocate and release serve.
	 * In all other respects they are like those two. */
	void *(*allocate_traces)(void *context, size_t bytes);

	/* Frees memory of allocate_traces. */
	void (*release_traces)(void *context, void *memory, size_t bytes);
};

/* The functions that the library calls in signal handlers. They must be async-signal-safe: they
 * must not allocate, wait for a lock, or depend on what the interrupted code may have left half
 * done. Each may be null. */
struct incstack_embedder_signals {
	/* As code.find_rule, for a sample with INCSTACK_TOP_INTERRUPTED. If it fails,
	 * or is null, the rule counts as unknown, and the next sample, retrieve or reserve
	 * outside of a handler asks code.find_rule. That may happen on another thread, after the
	 * code was unloaded. If code.find_rule reads memory that is unloaded with the code, fail
	 * with INCSTACK_EBUSY: then only the next handler that meets the code asks again. */
	int (*find_rule)(void *context, uintptr_t address, struct incstack_rule *rule);

	/* As code.decode, for the frame iterator over interrupted code (frames.h). Null: such
	 * frames are not decoded. */
	int (*decode)(void *context, const struct incstack_frame *frame,
		      struct incstack_virtual_frame *out, int max);

	/* Describes to incstack_stack_sample_signal what a signal has interrupted. *top is all
	 * zero. Returns
	 *   1   if the state is described: rules lead from the pc, sp and fp of *top to the
	 *       callers, at this very instruction. The sample is taken at once. Not possible on
	 *       a stack that only the embedder can walk: there 1 means 0.
	 *   0   if not: *top goes into the queue. Its pc is then any number that `decode`
	 *       understands; sp is the stack pointer (the name of the frame, where only the
	 *       embedder can walk). With INCSTACK_TOP_DECODE_NOW, `decode` is called when the
	 *       queue is drained, with this pc, sp and fp.
	 *   a negative INCSTACK_E* if nothing is known: the request fails.
	 * With the result 0, the flag INCSTACK_TOP_STAYS promises that the interrupted frame will
	 * still be on the stack when the queue is drained: the embedder drains the queue at the
	 * next poll, and every frame polls before it ends. top.slot must then be the frame's return
	 * slot. If the frame is popped without a poll after all, incstack_stack_unwinding_to
	 * withdraws the promise. So drain the queue before frames are popped without an
	 * announcement.
	 * The flag INCSTACK_TOP_CALLER_STAYS is for a frame that returns without another poll. It
	 * promises that top.slot holds the return address, or a thunk of the library in its place,
	 * that this address is the position of the caller, and that the caller's frame stays: it is
	 * neither popped nor replaced or moved before the queue is drained. The trace then consists
	 * of the interrupted frame, its caller at this position, and the callers of that. This is
	 * not possible on a stack that only the embedder can walk, or whose bounds are unknown.
	 * Without a promise the trace is marked as biased. It begins with the frame above
	 * top.slot, if that is known, otherwise with the youngest frame above top.sp. Null:
	 * incstack_stack_sample_signal returns INCSTACK_EINVAL. */
	int (*interrupted)(void *context, const struct incstack_interruption *at,
			   struct incstack_top *top);
};

/* The embedder's table. Several threads may call its functions at once, for different stacks. The
 * library calls them on the thread that called the library, or that returned through a barrier.
 * Inside them, operations on the same stack fail with INCSTACK_EBUSY. */
struct incstack_embedder {
	size_t size; /* sizeof(struct incstack_embedder) */
	struct incstack_embedder_code code;       /* rules and names */
	struct incstack_embedder_memory memory;   /* allocators */
	struct incstack_embedder_signals signals; /* what signal handlers may call */
};

/* The functions that walk a stack which only the embedder can walk and which has the embedder's own
 * return barrier: heap frames of an interpreter, or a stack watermark
 * (incstack_stack_create_embedder). `context` is that of the runtime, `identity` that of the stack.
 * On such a stack frame.sp is any number except 0 that names a frame for as long as it lives,
 * frame.pc is any number that `decode` understands, and frame.fp is for the embedder's use. What
 * struct incstack_embedder says about calls holds for these functions, too. Only `youngest` may be
 * null. */
struct incstack_stack_walker {
	size_t size; /* sizeof(struct incstack_stack_walker) */

	/* Replaces *frame with its caller and returns 1. Returns 0 if *frame is the outermost
	 * frame, and a negative INCSTACK_E* if the caller is unknown (the trace is truncated).
	 * It must set INCSTACK_FRAME_ARMED for every frame that has a barrier and for no other.
	 * A frame that reuses the memory of another starts without a barrier. It is called from
	 * a sample, from retrieve, and from incstack_stack_returned. */
	int (*caller)(void *context, void *identity, struct incstack_frame *frame);

	/* Puts a barrier on `frame`: the embedder must call incstack_stack_returned before control
	 * returns to `frame`, and before it pops `frame` without a return. That call removes the
	 * barrier without calling disarm, so clear your own mark before the call. If you pop the
	 * frame without that call, provide `youngest`, or take a sample before you retrieve: a
	 * sample that is not refused notices the pop, and the traces that needed the frame are
	 * truncated. A negative result means that this frame cannot have a barrier; then its
	 * caller is tried. */
	int (*arm)(void *context, void *identity, uintptr_t frame);

	/* Removes a barrier that arm put on `frame`. */
	void (*disarm)(void *context, void *identity, uintptr_t frame);

	/* As `caller`, but sets *frame, which is all zero, to the youngest frame of the stack; 0: the
	 * stack has no frame. retrieve, complete and set_mode call it first, to notice frames that
	 * were popped without incstack_stack_returned. The traces that needed them are truncated
	 * (stats.stale, stats.truncated), and `caller` is not called for them. Null: those frames
	 * must not be popped in this way; see `arm`. */
	int (*youngest)(void *context, void *identity, struct incstack_frame *frame);
};

INCSTACK_END_C

#endif
