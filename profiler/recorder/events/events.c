/* SPDX-License-Identifier: MIT
 *
 * The events of every kind of recording: jumps, switches of contexts, unloads, ends of threads.
 */
#include <stdatomic.h>

#include "recorder/code/code.h"
#include "recorder/events/enter.h"
#include "recorder/events/events.h"

void incstack__record_as_event(void (*function)(struct incstack__record *, void *), void *argument)
{
	struct incstack__record *record = enter();

	if (!record)
		return;
	function(record, argument);
	leave(record);
}

void incstack__record_thread(void)
{
	const struct incstack__record *record = enter();

	if (record)
		leave(record);
}

/* Handles a jump within a context, from a context or to a context. */
static __attribute__((noinline)) void jump_to_context(uintptr_t sp)
{
	struct incstack__record *context;
	struct incstack__protection before;

	incstack__record_protect(&before);
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	context = incstack__record_context(sp);
	if (context)
		incstack_stack_unwinding_to(context->stack, sp);
	if (context != incstack__record_context(HERE))
		incstack__record_context_leave(HERE, 1);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	incstack__record_unprotect(&before);
}

/* Only a jump whose target is on the thread's own stack pops frames of that stack. A jump that
 * leaves a signal stack or a fiber's stack also pops the frames of the thread's stack down to
 * its target. */
void incstack__record_jump(uintptr_t sp)
{
	struct incstack__record *record;

	if (!atomic_load_explicit(&incstack__recording.on, memory_order_relaxed))
		return;
	incstack__event_end_left(sp);
	record = enter();
	if (!record)
		return;
	if (sp >= record->low && sp < record->high)
		incstack_stack_unwinding_to(record->stack, sp);
	if ((uintptr_t)record->wait.slot < sp)
		record->wait.begin = 0; /* it was in a handler */
	if (atomic_load_explicit(&incstack__recording.contexts, memory_order_acquire))
		jump_to_context(sp);
	leave(record);
}

/* Lifts the barriers of a thread that ends, because from now on the popping of its frames is not
 * announced. */
void incstack__record_thread_end(void)
{
	struct incstack__record *record = enter();

	if (!record)
		return;
	if (record != incstack__recording.shared_record &&
	    incstack__recording.mode != INCSTACK_MODE_FULL)
		record->no_barriers =
			incstack_stack_set_mode(record->stack, INCSTACK_MODE_FULL) == 0;
	leave(record);
}

/* While a context runs, the stack of its thread is not walked. So the open callers on the thread's
 * stack are walked now. */
void incstack__record_switch(const void *ucontext)
{
	struct incstack__record *record = enter();
	struct incstack__protection before;

	if (!record)
		return;
	if (record != incstack__recording.shared_record && is_on(record, HERE))
		incstack__record_complete(record);
	incstack__record_protect(&before);
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	incstack__record_context_leave(HERE, 0);
	incstack__record_context_enter(ucontext);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	incstack__record_unprotect(&before);
	leave(record);
}

/* Before a dlclose, the record is written while the code is still loaded. */
void incstack__record_unload(enum incstack__unload what, const void *address)
{
	struct incstack__record *record;

	if (!atomic_load_explicit(&incstack__recording.on, memory_order_relaxed) ||
	    (incstack__record_local.state != 0 && !incstack__event_end_left(HERE)))
		return;
	begin(HERE);
	incstack__record_modules_unload(what, address);
	record = what == INCSTACK__UNLOAD_BEGINS ? incstack__record_self() : NULL;
	if (record)
		incstack__record_flush(record);
	end();
}
