/* SPDX-License-Identifier: MIT
 *
 * The embedder for plain C and C++ stacks (libincstack_native.a): unwind rules
 * from .eh_frame and from libunwind, the stack of a thread, tops that are the
 * caller or interrupted code, and a full walk to compare traces with. Conventions as in incstack.h.
 */
#ifndef INCSTACK_NATIVE_H
#define INCSTACK_NATIVE_H

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* Returns the table of native stacks. It has no decode (function = pc). Its memory comes directly from
 * mmap, so that malloc itself can be traced. The table is never null and always the same.
 *
 * find_rule: rules come from unwind tables only, never from a guess about frame pointers. Code outside
 * of loaded objects has no rule, even if a JIT compiler registered it with libgcc's
 * __register_frame: traces must equal libunwind's walk, and libunwind does not look there.
 * A frame that stores its CFA (INCSTACK_RULE_FP_DEREF, realigned stacks) lies at an unknown
 * distance from its CFA. So in this kind of rule only, fp_offset counts from the frame
 * pointer: caller's fp = *(fp - fp_offset), and 0 is an offset, too.
 * The function reads .eh_frame. Only if that has no rule, it asks libunwind. libunwind does
 * not call malloc for this. It takes a few pages from the kernel and keeps them, waits for
 * the dynamic linker, and masks signals through libc. libc removes its signals 32 and 33
 * from every mask. If the caller had blocked one of them by the system call itself, as only
 * libc's own threads do (for example that of timers with SIGEV_THREAD), it is unblocked for
 * a moment and may end the process. To sample in such threads, or where waiting for locks
 * is not allowed, use a copy of the table whose find_rule is its find_rule_quickly. That
 * takes no lock (since glibc 2.35) and changes no mask. The first call of find_rule makes a
 * small object with malloc, unless incstack_runtime_create_native was called before.
 *
 * signals.find_rule finds rules since glibc 2.35.
 *
 * interrupted: the state is described if the unwind tables have a rule for this very instruction, and
 * if a call instruction precedes each of the return addresses of the interrupted frame and of its
 * caller: the tables of hand-written code are exact only at calls. The library's trampoline is
 * described, too. Other states go into the queue, and their traces are biased, because nothing
 * promises that the interrupted function is still running when the queue is drained. Before glibc
 * 2.35 only the trampoline is described.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API const struct incstack_embedder *incstack_native_embedder(void);

/* Creates a runtime with the table of incstack_native_embedder and the given options. Null
 * options mean all defaults with an adaptive barrier distance. options->embedder must be null or
 * that table. incstack_runtime_create takes a copy of the table.
 * The environment variable INCSTACK_MODE restricts the mode, so that the user of a program can switch
 * patching off: "validate" forbids patching; "full" also forbids remembering frames between
 * samples. "patch" and the empty string change nothing. Any other value means "full". FULL stays
 * FULL. With a table of its own, an embedder decides itself who may restrict the mode.
 * Errors: EINVAL, ENOMEM, and those of incstack_runtime_create.
 * Thread: any, while nobody changes the environment. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_runtime_create_native(const struct incstack_options *options,
						struct incstack_runtime **runtime);

/* Writes the addresses [*low, *high) that the calling thread's stack may occupy. For the
 * main thread *low is the limit of its growth. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: never (glibc may use malloc). Blocks: in the main
 * thread it reads a file of the kernel. */
INCSTACK_API int incstack_native_stack_range(uintptr_t *low, uintptr_t *high);

/* Creates the state of the calling thread's stack. While this thread runs on another stack, for
 * example that of a fiber, it cannot tell which frames are left of its own. So a retrieve there
 * truncates what was not walked before. Errors: as incstack_native_stack_range and
 * incstack_stack_create.
 * Thread: any. Signal: no. Allocates: may. Blocks: as incstack_native_stack_range. */
INCSTACK_API int incstack_stack_create_native(struct incstack_runtime *runtime,
					      struct incstack_stack **stack);

/* Returns the top for a sample, a drain of the queue, or a walk with the frame iterator. Without
 * `ucontext` it is the caller of this function, which must not return before the top was used.
 * Otherwise it is what a signal interrupted: `ucontext` is the third argument of the signal handler.
 * The walk may be made in that handler, or by another thread while the thread waits in it.
 * Thread: any, while an interrupted thread stays in its handler. Signal: yes.
 * Allocates: never. Blocks: never. */
INCSTACK_API struct incstack_top incstack_native_top(const void *ucontext);

/* Walks the whole stack with libunwind, from the caller of this function, as a reference
 * for incremental traces. Writes up to max frames, youngest first, without the library's
 * thunks. Returns how many. Masks signals through libc, as find_rule of the table may.
 * Errors: EINVAL, EUNWIND, ENOMEM.
 * Thread: any. Signal: yes, where libunwind can. Allocates: the first call. Blocks: on
 * locks of libunwind (before glibc 2.35, also of the dynamic linker). */
INCSTACK_API int incstack_native_walk(struct incstack_frame *frames, int max);

INCSTACK_END_C

#endif
