/* SPDX-License-Identifier: MIT
 *
 * The records of contexts (swapcontext): each stack has one of its own. A context is
 * left without barriers and with complete traces, for its memory may be gone or another
 * context's before anyone comes back; so nobody must be told of its end. One that was
 * left untold, by instructions of the program's own, is not read again.
 *
 * The recording's lock is held in all of these.
 */
#define _GNU_SOURCE
#include <ucontext.h>

#include "recorder.h"

/* Of those beyond, each trace is walked fully, on the shared record. */
enum { CONTEXTS_MAX = 1024 };

static int runs_on(const struct incstack__record *context, uintptr_t at)
{
	return at >= context->low && at < context->high;
}

/* Found ones come first: the next event is likely theirs, too. */
struct incstack__record *incstack__record_context(uintptr_t at)
{
	struct incstack__record **first = &incstack__recording.contexts;

	for (struct incstack__record **link = first; *link != NULL; link = &(*link)->next) {
		struct incstack__record *context = *link;

		if (!runs_on(context, at))
			continue;
		*link = context->next;
		context->next = *first;
		*first = context;
		context->tid = gettid();
		context->settled = 0;
		incstack_stack_own(context->stack);
		return context;
	}
	return NULL;
}

void incstack__record_context_leave(uintptr_t at)
{
	struct incstack__record *context = incstack__record_context(at);

	if (context == NULL)
		return;
	incstack_stack_reserve(context->stack, INCSTACK__RESERVE_BYTES);
	if (incstack_stack_set_mode(context->stack, incstack__recording.mode) == 0)
		context->settled = 1;
}

static struct incstack__record *make(uintptr_t low, uintptr_t high)
{
	struct incstack__recording *r = &incstack__recording;
	struct incstack__record *context = incstack__spool_record();

	if (context == NULL)
		return NULL;
	context->low = low;
	context->high = high;
	if (incstack__record_prepare(context, incstack__record_number()) != 0 ||
	    incstack_stack_create(r->runtime, low, high, &context->stack) != 0) {
		incstack__record_discard(context);
		return NULL;
	}
	incstack_stack_reserve(context->stack, INCSTACK__RESERVE_BYTES);
	incstack__record_publish(context);
	return context;
}

/* A thread's own context, too, is saved by swapcontext; that one has no stack to tell. */
void incstack__record_context_enter(const void *ucontext)
{
	struct incstack__recording *r = &incstack__recording;
	const ucontext_t *to = ucontext;
	const uintptr_t sp = (uintptr_t)to->uc_mcontext.gregs[REG_RSP];
	const uintptr_t base = (uintptr_t)to->uc_stack.ss_sp;
	const uintptr_t low = (base + 7) & ~(uintptr_t)7;
	const uintptr_t high = (base + to->uc_stack.ss_size) & ~(uintptr_t)7;
	struct incstack__record *context = incstack__record_context(sp);

	if (context != NULL || sp < low || sp >= high || r->contexts_made == CONTEXTS_MAX)
		return;
	r->contexts_made++; /* also where it fails: not tried for ever */
	context = make(low, high);
	if (context == NULL)
		return;
	context->tid = gettid();
	context->next = r->contexts;
	__atomic_store_n(&r->contexts, context, __ATOMIC_RELEASE);
}

void incstack__record_contexts_flush(pid_t tid, uintptr_t at, int last)
{
	for (struct incstack__record *c = incstack__recording.contexts; c != NULL; c = c->next) {
		if (c->tid != tid || incstack_stack_own(c->stack) != 0)
			continue;
		if (!c->settled && !runs_on(c, at)) {
			if (!last)
				continue;
			incstack_stack_forget(c->stack);
		}
		incstack__record_flush(c);
	}
}

static int lives(pid_t tid)
{
	for (const struct incstack__record *i = incstack__recording.threads; i != NULL; i = i->next)
		if (i->tid == tid)
			return 1;
	return 0;
}

/* Of threads that have ended. */
void incstack__record_contexts_flush_rest(int last)
{
	for (struct incstack__record *c = incstack__recording.contexts; c != NULL; c = c->next)
		if (!lives(c->tid))
			incstack__record_contexts_flush(c->tid, 0, last);
}
