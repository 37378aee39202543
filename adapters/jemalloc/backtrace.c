/* SPDX-License-Identifier: MIT
 *
 * The function that jemalloc calls for the stack of a sampled allocation. It walks by unwind rules, which
 * the runtime caches. It takes no lock and never calls malloc, so it works inside of dlopen, of a callback of
 * dl_iterate_phdr, and while an exception is thrown.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include <incstack/frames.h>
#include <incstack/native.h>

#include "adapter.h"
#include "incstack_jemalloc.h"

static struct incstack_runtime *runtime;
static struct incstack_embedder table; /* the native one, without what may wait */
static struct {
	_Atomic uint64_t stacks, cut;
} counts;

/* The part of this thread's stack that is known to be mapped as long as the thread lives. A walk asks the kernel
 * before it reads a page elsewhere. */
static __thread __attribute__((tls_model("initial-exec"))) struct {
	uintptr_t low, high;
} own;

/* ---- preparation ------------------------------------------------------------------------- */

/* find_rule_quickly has all rules that unwind tables give. libunwind, which is asked otherwise, waits. */
static int find_no_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	(void)context;
	(void)address;
	(void)rule;
	return INCSTACK_EUNWIND;
}

/* A thread that was making a larger table of rules does not exist in the child. */
static void forked(void)
{
	incstack_runtime_forked(runtime);
}

int incstack__jemalloc_prepare(void)
{
	const struct incstack_options options = {.size = sizeof(options), .embedder = &table};
	int error;

	if (runtime)
		return 0;
	table = *incstack_native_embedder();
	table.code.find_rule = find_no_rule;
	error = incstack_runtime_create(&options, &runtime);
	if (error)
		return error;
	incstack_runtime_reserve(runtime);
	(void)incstack_native_stack_range(&own.low, &own.high);
	return pthread_atfork(NULL, NULL, forked) ? INCSTACK_ENOMEM : 0;
}

/* ---- which memory is readable ------------------------------------------------------------ */

/* Learns from a walk that has reached the base of the thread's stack. The thread's control block lies right
 * above that base, in the same mapping. All frames lay between `top` and it, so this part is mapped. */
static void learn_bounds(uintptr_t top, uintptr_t base)
{
	enum { MOST_ABOVE = 64 << 10 }; /* the thread's variables and those of libc's start */
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t block = (uintptr_t)pthread_self();

	if (own.high && own.high != block)
		return; /* the thread of the start: all of its stack is known */
	if (base >= block || block - base > MOST_ABOVE || base < top)
		return;
	own.high = block;
	own.low = top & -page;
}

/* ---- the walk ---------------------------------------------------------------------------- */

/* What a walk has met. */
struct walk {
	unsigned length;
	bool on_one_stack; /* no signal frame: it leads from a stack to another */
	int end;           /* what incstack_frames_next has returned last */
	uintptr_t base;    /* the stack pointer of the outermost frame */
};

/* Writes the frames but the first one, which is ours. */
static struct walk walk_from(const struct incstack_top *top, void **frames, unsigned max)
{
	const struct incstack_frames_place place = {
		.runtime = runtime, .low = own.low, .high = own.high};
	struct incstack_frames at;
	struct walk walk = {.on_one_stack = true};

	walk.end = incstack_frames_begin(&at, &place, top);
	if (walk.end == 0)
		walk.end = incstack_frames_next(&at);
	while (walk.end > 0 && walk.length < max && (walk.end = incstack_frames_next(&at)) > 0) {
		frames[walk.length++] = (void *)at.frame.pc;
		walk.on_one_stack &= !(at.frame.flags & INCSTACK_FRAME_SIGNAL);
		walk.base = at.frame.sp;
	}
	return walk;
}

static void count(_Atomic uint64_t *number)
{
	atomic_fetch_add_explicit(number, 1, memory_order_relaxed);
}

__attribute__((noinline)) void incstack__jemalloc_backtrace(void **frames, unsigned *length,
							    unsigned max)
{
	const struct incstack_top top = incstack_native_top(NULL);
	struct walk walk;

	incstack__jemalloc_forget_unloaded(runtime);
	incstack_runtime_reserve(runtime);
	walk = walk_from(&top, frames, max);
	*length = walk.length;
	count(&counts.stacks);
	if (walk.end < 0)
		count(&counts.cut);
	else if (walk.end == 0 && walk.on_one_stack && (!own.high || top.sp < own.low))
		learn_bounds(top.sp, walk.base);
}

struct incstack_jemalloc_counts incstack_jemalloc_count(void)
{
	return (struct incstack_jemalloc_counts){
		.stacks = atomic_load_explicit(&counts.stacks, memory_order_relaxed),
		.cut = atomic_load_explicit(&counts.cut, memory_order_relaxed),
	};
}
