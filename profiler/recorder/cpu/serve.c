/* SPDX-License-Identifier: MIT
 *
 * Does for a CPU profile what the handler of a tick must not do: looks for new modules, makes room,
 * finds missed rules, and writes batches. The program's calls of interposed functions are the
 * places where this is allowed; the handler asks for it by setting `due`. A thread that makes no
 * such call for a long time is served by the handler, as far as that needs no memory from the
 * kernel and no waiting.
 */
#include <stdatomic.h>

#include "recorder/log/own_stack.h"
#include "recorder/system/kernel.h"
#include "recorder/code/modules.h"
#include "recorder/code/code.h"
#include "recorder/cpu/ticks.h"
#include "recorder/events/events.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

#define HERE ((uintptr_t)__builtin_frame_address(0))

enum { LOOKS = 1000 };

/* Whether the thread is in an event, or has left an event by a jump that was not noticed yet. */
static bool is_inside(void)
{
	return incstack__record_local.state != 0;
}

static void take_signal(void)
{
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	if (incstack__timer_signal(incstack__ticker->on_timer) != 0)
		incstack__record_note(INCSTACK__NOTE_NO_TIMER);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
}

static void serve_here(void *argument)
{
	struct incstack__record *record = argument;
	struct incstack__protection before;

	incstack__record_modules();
	incstack__record_protect(&before);
	take_signal();
	incstack__ticker->serve(record);
	incstack__record_unprotect(&before);
	incstack__renew(record);
	incstack__record_protect(&before);
	incstack__spool_ahead();
	incstack__record_unprotect(&before);
}

/* Serves the record. If the thread runs on a fiber's stack, whose size is not known, this is done
 * on the recorder's own stack. If too little of the thread's stack is left, a later call serves the
 * record. */
void incstack__serve(struct incstack__record *record, void *argument)
{
	struct incstack__protection before;
	stack_t of_signals = {0};
	struct incstack__place place;

	(void)argument;
	if (record == incstack__recording.shared_record)
		return;
	incstack__kernel_call(SYS_sigaltstack, NULL, &of_signals);
	if ((of_signals.ss_flags & SS_ONSTACK) == 0)
		of_signals.ss_size = 0;
	place = incstack__place_of_caller(record, &of_signals);
	if (place.left >= INCSTACK__STACK_TO_SERVE) {
		serve_here(record);
	} else if (place.where == INCSTACK__ON_OTHER_STACK) {
		incstack__record_protect(&before);
		incstack__own_stack_run(record, serve_here, record);
		incstack__record_unprotect(&before);
	}
}

/* Makes the record of a new thread, with its timer, and sets memory aside for its handler. The
 * signal is taken before any timer is started, because without a handler it would end the
 * process. */
void incstack__serve_begin(void)
{
	struct incstack__protection before;

	incstack__record_protect(&before);
	take_signal();
	incstack__record_unprotect(&before);
	incstack__record_self();
	incstack__record_protect(&before);
	incstack__spool_ahead();
	incstack__record_unprotect(&before);
}

static __attribute__((noinline)) void serve_now(void)
{
	if (is_inside() || (!atomic_load_explicit(&incstack__recording.on, memory_order_relaxed) &&
			    !incstack__record_begin_late()))
		return;
	if (!incstack__record_local.mine)
		incstack__serve_begin();
	else
		incstack__record_as_event(incstack__serve, NULL);
}

/* After a call of dlopen, some calls check whether the new module is there, because traces end at
 * its code until its rules are known. */
static __attribute__((noinline)) void look(struct incstack__record *record)
{
	record->opening--;
	if (incstack__record_modules_unchanged())
		return;
	record->opening = 0;
	serve_now();
}

static inline void poll(void)
{
	struct incstack__record *record = incstack__record_local.mine;

	if (__builtin_expect(!record || record->due, 0))
		serve_now();
	else if (__builtin_expect(record->opening != 0, 0))
		look(record);
}

void incstack__serve_shown(uintptr_t *slot)
{
	if (incstack__record_local.mine)
		incstack__record_local.mine->opening = LOOKS;
	incstack__record_shown(slot);
}

void incstack__serve_thread(void)
{
	poll();
}

void incstack__serve_alloc(const void *block, size_t bytes, struct incstack__caller caller)
{
	(void)block;
	(void)bytes;
	(void)caller;
	poll();
}

void incstack__serve_free(const void *block)
{
	(void)block;
	poll();
}

void incstack__serve_new(const void *block, size_t bytes, struct incstack__caller caller,
			 uint64_t position)
{
	(void)position;
	incstack__serve_alloc(block, bytes, caller);
}

/* Contexts have no records, because what is outside of the thread's own stack is walked fully, and
 * nothing is patched there. */
void incstack__serve_switch(const void *ucontext)
{
	(void)ucontext;
	poll();
}

void incstack__serve_exec(void)
{
	incstack__ticker->leave();
	incstack__record_exec();
}
