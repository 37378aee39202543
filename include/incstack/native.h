/* SPDX-License-Identifier: MIT
 *
 * The embedder for plain C and C++ stacks (libincstack_native.a): unwind rules
 * from .eh_frame through libunwind, the stack of a thread, samples of the
 * caller, and a full walk to compare with.
 */
#ifndef INCSTACK_NATIVE_H
#define INCSTACK_NATIVE_H

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* The unwind rule for a look-up address (the pc of an exact frame, pc - 1 of a
 * return address), for the find_rule of a table. `context` is not used. Only
 * what unwind tables say is believed: no guess from frame pointers. Code that is
 * not in a loaded object has no rule.
 *
 * A frame whose CFA is stored in it (INCSTACK_RULE_FP_DEREF, realigned stacks)
 * lies at an unknown distance from its CFA, so there, and only there, the rule's
 * fp_offset counts from the frame pointer: caller's fp = *(fp - fp_offset), and
 * 0 is an offset, too.
 * Errors: EINVAL, EUNWIND (no entry, or one that the struct cannot express),
 * ENOMEM.
 * Thread: any. Signal: no. Allocates: never (the first call makes a small object
 * with malloc unless incstack_native_runtime_create did). Blocks: on the
 * dynamic linker's lock. */
INCSTACK_API int incstack_native_find_rule(void *context, uintptr_t address,
					   struct incstack_rule *rule);

/* The table: find_rule as above, no decode (method = pc), memory straight from
 * mmap, so that malloc may be what is traced. Never null, never changes.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API const struct incstack_embedder *incstack_native_embedder(void);

/* Creates a runtime with that table and otherwise with the options given; null
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
 * EINVAL, EUNWIND.
 * Thread: any. Signal: yes, where libunwind can. Allocates: never. Blocks: on the
 * dynamic linker's lock. */
INCSTACK_API int incstack_native_walk(struct incstack_frame *frames, int max);

/* Forgets every unwind rule, after code went away (dlclose) and before a sample
 * meets what came to its place; libunwind's own, too. Errors: EINVAL.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_native_code_unloaded(struct incstack_runtime *runtime);

INCSTACK_END_C

#endif
