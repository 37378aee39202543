/* SPDX-License-Identifier: MIT
 *
 * The embedder for plain C and C++ stacks (libincstack_native.a): unwind rules
 * from .eh_frame and from libunwind, the stack of a thread, samples of the
 * caller, and a full walk to compare with.
 */
#ifndef INCSTACK_NATIVE_H
#define INCSTACK_NATIVE_H

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* The unwind rule for a look-up address (the pc of an exact frame, pc - 1 of a
 * return address), for the find_rule of a table. `context` is not used. Only
 * what unwind tables say is believed: no guess from frame pointers. Code that is
 * not in a loaded object has no rule, also where a JIT told libgcc of it with
 * __register_frame: libunwind, whose walk traces must equal, does not look there.
 *
 * A frame whose CFA is stored in it (INCSTACK_RULE_FP_DEREF, realigned stacks)
 * lies at an unknown distance from its CFA, so there, and only there, the rule's
 * fp_offset counts from the frame pointer: caller's fp = *(fp - fp_offset), and
 * 0 is an offset, too.
 * Errors: EINVAL, EUNWIND (no entry, or one that the struct cannot express),
 * ENOMEM.
 * .eh_frame is read here; only where it has no rule, libunwind is asked, which never
 * calls malloc for it, but takes memory from the kernel for pools of its own (some
 * pages, kept), waits for the dynamic linker, and masks signals through libc. libc takes
 * its signals 32 and 33 out of every mask: one of them that the caller had blocked by the
 * kernel's own call is unblocked meanwhile, and may end the process. Only libc's own
 * threads do so, for example that of timers with SIGEV_THREAD. Who samples there, or must
 * not wait for locks, gives the core a table whose find_rule is the find_rule_quickly of
 * incstack_native_embedder(): that takes no lock (since glibc 2.35) and leaves masks alone.
 * Thread: any. Signal: no. Allocates: never (the first call makes a small object
 * with malloc unless incstack_native_runtime_create did). Blocks: on the
 * dynamic linker's lock. */
INCSTACK_API int incstack_native_find_rule(void *context, uintptr_t address,
					   struct incstack_rule *rule);

/* The table: find_rule as above, no decode (method = pc), memory straight from
 * mmap, so that malloc may be what is traced. Never null, never changes.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API const struct incstack_embedder *incstack_native_embedder(void);

/* The kill switch: the user of a program may set INCSTACK_MODE in its environment to
 * "validate", and no return address is patched, or to "full" (as is whatever else it
 * is set to, but "patch" and nothing), and nothing is remembered either. Returns the
 * mode (enum incstack_mode) that is left of the wanted one; an embedder with a table
 * of its own passes it to incstack_runtime_create.
 * Thread: any, while nobody changes the environment. Signal: no. Allocates: never.
 * Blocks: never. */
INCSTACK_API uint32_t incstack_native_mode(uint32_t wanted);

/* Creates a runtime with that table, in the mode that incstack_native_mode leaves of
 * the wanted one, and otherwise with the options given; null
 * means all defaults with an adaptive barrier distance. A table in the options is
 * contradictory. Errors: EINVAL, ENOMEM, and those of incstack_runtime_create.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_native_runtime_create(const struct incstack_options *options,
						struct incstack_runtime **runtime);

/* The addresses [*low, *high) that the calling thread's stack may occupy; for
 * the main thread as far down as it may still grow. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: never (glibc may use malloc). Blocks: reads
 * a file of the kernel in the main thread. */
INCSTACK_API int incstack_native_stack_range(uintptr_t *low, uintptr_t *high);

/* Creates the state of the calling thread's stack. Errors: as
 * incstack_native_stack_range and incstack_stack_create.
 * Thread: any. Signal: no. Allocates: may. Blocks: as incstack_native_stack_range. */
INCSTACK_API int incstack_native_thread_stack(struct incstack_runtime *runtime,
					      struct incstack_stack **stack);

/* incstack_sample with the caller of this function as the top.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_native_sample(struct incstack_stack *stack, uint64_t id, uint64_t weight);

/* incstack_sample of what a signal interrupted: `ucontext` is the third argument
 * of the handler. Errors: EINVAL, and those of incstack_sample.
 * Thread: owner. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_native_sample_interrupted(struct incstack_stack *stack, uint64_t id,
						    uint64_t weight, const void *ucontext);

/* Walks the whole stack with libunwind, from the caller of this function, and
 * writes up to max frames, youngest first; the library's thunks are left out.
 * This is what incremental traces are compared with. Returns how many; errors:
 * EINVAL, EUNWIND, ENOMEM. Masks signals through libc, as incstack_native_find_rule may.
 * Thread: any. Signal: yes, where libunwind can. Allocates: the first call. Blocks: on
 * locks of libunwind (before glibc 2.35, also of the dynamic linker). */
INCSTACK_API int incstack_native_walk(struct incstack_frame *frames, int max);

/* Forgets every unwind rule, libunwind's own too. An embedder that unloads code calls it
 * after the code went (dlclose has returned) and before anybody runs code that may come to
 * its place: before the next dlopen or mmap of code, or with those excluded meanwhile. A
 * sample of another thread may run at the same time, since no frame of the code is on its
 * stack. Traces that were captured before name the code by its address only: who gives
 * names to addresses retrieves the stacks of all threads before the code goes. Code that
 * comes needs no call. What libc unloads by itself (iconv, name services) tells nobody.
 * Errors: EINVAL.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_native_code_unloaded(struct incstack_runtime *runtime);

/* ---- the stacks of a program, by address -------------------------------------
 *
 * A program that switches stacks tells of it, and asks on which stack it samples:
 * makecontext, then context_made; context_switched, then swapcontext or setcontext
 * to that context (also where uc_link leads). On a stack that is not found, it
 * samples with the stack of its thread: the walk is full and patches nothing. So
 * it does on a signal stack, where the trace goes on to what was interrupted. */
struct incstack_native_stacks;

/* Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_native_stacks_create(struct incstack_runtime *runtime,
					       struct incstack_native_stacks **stacks);

/* Errors: EINVAL, EBUSY while a stack is in it.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_native_stacks_destroy(struct incstack_native_stacks *stacks);

/* Adds a stack that is made elsewhere, a thread's, and takes it out before it is
 * destroyed. Ranges may be nested, as where a context runs on an array of another
 * stack. Errors: EINVAL, ENOMEM, EBUSY for ranges that cross; ERANGE: not in it.
 * Thread: any. Signal: no. Allocates: never. Blocks: on a lock. */
INCSTACK_API int incstack_native_stacks_add(struct incstack_native_stacks *stacks,
					    struct incstack_stack *stack, uintptr_t low,
					    uintptr_t high);
INCSTACK_API int incstack_native_stacks_remove(struct incstack_native_stacks *stacks,
					       const struct incstack_stack *stack);

/* The innermost stack around an address. Errors: EINVAL, ERANGE: there is none.
 * Thread: any. Signal: no. Allocates: never. Blocks: on a lock. */
INCSTACK_API int incstack_native_stacks_find(struct incstack_native_stacks *stacks, uintptr_t sp,
					     struct incstack_stack **stack);

/* The state of the stack of a context (a ucontext_t) that makecontext made and that
 * did not run yet, owned by the caller. Where one ran before on just that memory,
 * its state is taken over: its traces stay, what was open is truncated.
 * Errors: EINVAL, ENOMEM, EBUSY for a range that crosses another.
 * Thread: any. Signal: no. Allocates: may. Blocks: on a lock. */
INCSTACK_API int incstack_native_context_made(struct incstack_native_stacks *stacks,
					      const void *ucontext, struct incstack_stack **stack);

/* The caller is about to run on the stack of the context, and owns it from now on:
 * it may come from another thread. Errors: EINVAL, ERANGE: unknown.
 * Thread: the one that switches. Signal: no. Allocates: never. Blocks: on a lock. */
INCSTACK_API int incstack_native_context_switched(struct incstack_native_stacks *stacks,
						  const void *ucontext,
						  struct incstack_stack **stack);

/* Before the memory of a context's stack goes, suspended or ended: its state is
 * abandoned with the traces that were not retrieved. Errors: EINVAL, ERANGE.
 * Thread: any, while nobody runs on it. Signal: no. Allocates: never. Blocks: on a
 * lock. */
INCSTACK_API int incstack_native_context_destroyed(struct incstack_native_stacks *stacks,
						   const void *ucontext);

INCSTACK_END_C

#endif
