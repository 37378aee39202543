/* SPDX-License-Identifier: MIT
 *
 * The embedder for plain C and C++ stacks (libincstack_native.a): unwind rules
 * from .eh_frame and from libunwind, the stack of a thread, samples whose top is
 * the caller, and a full walk to compare traces with. Conventions as in incstack.h.
 */
#ifndef INCSTACK_NATIVE_H
#define INCSTACK_NATIVE_H

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* Finds the unwind rule for a look-up address: the pc of an exact frame, or pc - 1 of a
 * return address. It serves as find_rule of an embedder's table; `context` is not used.
 * Rules come from unwind tables only, never from a guess about frame pointers. Code outside
 * of loaded objects has no rule, even if a JIT compiler registered it with libgcc's
 * __register_frame: traces must equal libunwind's walk, and libunwind does not look there.
 *
 * A frame that stores its CFA (INCSTACK_RULE_FP_DEREF, realigned stacks) lies at an unknown
 * distance from its CFA. So in this kind of rule only, fp_offset counts from the frame
 * pointer: caller's fp = *(fp - fp_offset), and 0 is an offset, too.
 *
 * The function reads .eh_frame. Only if that has no rule, it asks libunwind. libunwind does
 * not call malloc for this. It takes a few pages from the kernel and keeps them, waits for
 * the dynamic linker, and masks signals through libc. libc removes its signals 32 and 33
 * from every mask. If the caller had blocked one of them by the system call itself, as only
 * libc's own threads do (for example that of timers with SIGEV_THREAD), it is unblocked for
 * a moment and may end the process. To sample in such threads, or where waiting for locks
 * is not allowed, use a table whose find_rule is the find_rule_quickly of
 * incstack_native_embedder(): it takes no lock (since glibc 2.35) and changes no mask.
 * Errors: EINVAL, ENOMEM; EUNWIND: no entry, or one that the struct cannot express.
 * Thread: any. Signal: no. Allocates: never (the first call makes a small object
 * with malloc unless incstack_native_runtime_create did). Blocks: on the
 * dynamic linker's lock. */
INCSTACK_API int incstack_native_find_rule(void *context, uintptr_t address,
					   struct incstack_rule *rule);

/* Returns the table of native stacks: find_rule as above, no decode (method = pc), memory
 * directly from mmap, so that malloc itself can be traced. Never null, always the same.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API const struct incstack_embedder *incstack_native_embedder(void);

/* Returns the mode (enum incstack_mode) to use instead of `wanted`, after the environment
 * variable INCSTACK_MODE was applied. With it the user of a program can switch patching
 * off: "validate" forbids patching; "full" also forbids remembering frames between samples.
 * "patch" and the empty string change nothing. Any other value means "full". The variable
 * can only restrict: FULL stays FULL. An embedder with its own table passes the result to
 * incstack_runtime_create.
 * Thread: any, while nobody changes the environment. Signal: no. Allocates: never.
 * Blocks: never. */
INCSTACK_API uint32_t incstack_native_mode(uint32_t wanted);

/* Creates a runtime with the table of incstack_native_embedder and the given options. The
 * mode is that of incstack_native_mode(options->mode). Null options mean all defaults with
 * an adaptive barrier distance. options->embedder must be null or
 * that table.
 * Errors: EINVAL, ENOMEM, and those of incstack_runtime_create.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_native_runtime_create(const struct incstack_options *options,
						struct incstack_runtime **runtime);

/* Writes the addresses [*low, *high) that the calling thread's stack may occupy. For the
 * main thread *low is the limit of its growth. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: never (glibc may use malloc). Blocks: in the main
 * thread it reads a file of the kernel. */
INCSTACK_API int incstack_native_stack_range(uintptr_t *low, uintptr_t *high);

/* Creates the state of the calling thread's stack. Errors: as
 * incstack_native_stack_range and incstack_stack_create.
 * Thread: any. Signal: no. Allocates: may. Blocks: as incstack_native_stack_range. */
INCSTACK_API int incstack_native_thread_stack(struct incstack_runtime *runtime,
					      struct incstack_stack **stack);

/* Takes a sample whose top is the caller of this function. Errors: as incstack_sample.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_native_sample(struct incstack_stack *stack, uint64_t id, uint64_t weight);

/* Takes a sample whose top is the frame that a signal interrupted. `ucontext` is the third
 * argument of the signal handler. Errors: EINVAL, and those of incstack_sample.
 * Thread: owner. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_native_sample_interrupted(struct incstack_stack *stack, uint64_t id,
						    uint64_t weight, const void *ucontext);

/* Walks the whole stack with libunwind, from the caller of this function, as a reference
 * for incremental traces. Writes up to max frames, youngest first, without the library's
 * thunks. Returns how many. Masks signals through libc, as incstack_native_find_rule may.
 * Errors: EINVAL, EUNWIND, ENOMEM.
 * Thread: any. Signal: yes, where libunwind can. Allocates: the first call. Blocks: on
 * locks of libunwind (before glibc 2.35, also of the dynamic linker). */
INCSTACK_API int incstack_native_walk(struct incstack_frame *frames, int max);

/* Forgets every unwind rule, also those that libunwind has cached. An embedder that unloads
 * code calls it after the code went (dlclose has returned) and before other code can run in
 * its place: before the next dlopen or mmap of code, or while those are excluded. Other
 * threads may sample at the same time, because no frame of the code is on their stacks.
 * Earlier traces name the code by its address only. To give them names, retrieve the stacks
 * of all threads before the code goes. Newly loaded code needs no call. libc also unloads
 * code by itself (iconv, name services) and reports it to nobody.
 * Errors: EINVAL.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_native_code_unloaded(struct incstack_runtime *runtime);

/* ---- the stacks of a program, by address -------------------------------------
 *
 * A program that switches stacks reports the switches and asks on which stack it samples.
 * Call context_made after makecontext. Call context_switched before swapcontext or
 * setcontext to that context, and for the context in uc_link before control returns to it.
 * If no stack is found, sample with the state of the thread's stack: that sample walks fully
 * and patches nothing. Do the same on a signal stack; there the trace continues with the
 * interrupted code. */

/* A set of stacks, to find the stack of an address. */
struct incstack_native_stacks;

/* Creates an empty set of stacks. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_native_stacks_create(struct incstack_runtime *runtime,
					       struct incstack_native_stacks **stacks);

/* Frees the set. Errors: EINVAL; EBUSY while it contains a stack.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_native_stacks_destroy(struct incstack_native_stacks *stacks);

/* Adds a stack that was created elsewhere, for example that of a thread. It occupies
 * [low, high). Ranges may be nested, for example if a context runs on an array that lies on
 * another stack. Errors: EINVAL, ENOMEM; EBUSY: the range crosses another.
 * Thread: any. Signal: no. Allocates: never. Blocks: on a lock. */
INCSTACK_API int incstack_native_stacks_add(struct incstack_native_stacks *stacks,
					    struct incstack_stack *stack, uintptr_t low,
					    uintptr_t high);

/* Removes a stack from the set. Call it before the stack is destroyed.
 * Errors: EINVAL; ERANGE: the stack is not in the set.
 * Thread: any. Signal: no. Allocates: never. Blocks: on a lock. */
INCSTACK_API int incstack_native_stacks_remove(struct incstack_native_stacks *stacks,
					       const struct incstack_stack *stack);

/* Finds the innermost stack that contains an address. Errors: EINVAL; ERANGE: none does.
 * Thread: any. Signal: no. Allocates: never. Blocks: on a lock. */
INCSTACK_API int incstack_native_stacks_find(struct incstack_native_stacks *stacks, uintptr_t sp,
					     struct incstack_stack **stack);

/* Creates the state of the stack of a context (a ucontext_t) that makecontext made and that
 * did not run yet. The caller owns it. If an earlier context had exactly the same memory,
 * its state is reused: its traces stay, and those that were open are truncated.
 * Errors: EINVAL, ENOMEM; EBUSY: the range crosses another.
 * Thread: any. Signal: no. Allocates: may. Blocks: on a lock. */
INCSTACK_API int incstack_native_context_made(struct incstack_native_stacks *stacks,
					      const void *ucontext, struct incstack_stack **stack);

/* Reports that the caller is about to run on the stack of the context, and makes the caller
 * its owner. The context may have run on another thread before. Errors: EINVAL; ERANGE: the
 * context is unknown.
 * Thread: the one that switches. Signal: no. Allocates: never. Blocks: on a lock. */
INCSTACK_API int incstack_native_context_switched(struct incstack_native_stacks *stacks,
						  const void *ucontext,
						  struct incstack_stack **stack);

/* Reports that the memory of a context's stack is about to go; the context is suspended or
 * has ended. Its state is abandoned, with the traces that were not retrieved.
 * Errors: EINVAL; ERANGE: the context is unknown.
 * Thread: any, while no thread runs on it. Signal: no. Allocates: never. Blocks: on a
 * lock. */
INCSTACK_API int incstack_native_context_destroyed(struct incstack_native_stacks *stacks,
						   const void *ucontext);

INCSTACK_END_C

#endif
