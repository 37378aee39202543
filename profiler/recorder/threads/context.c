/* SPDX-License-Identifier: MIT
 *
 * The records of contexts (swapcontext): each context's stack has its own record. When a context is
 * left, its traces are completed and its barriers lifted (D56), so the end of a context need not be
 * announced. The stack of a context that was left unannounced, by instructions of the program, is
 * not read again. D55 says when a record is released.
 *
 * The caller of each public function holds the recording's lock.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <ucontext.h>

#include "recorder/system/kernel.h"
#include "interrupted.h"
#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "recorder/threads/threads.h"

/* Contexts beyond the maximum use the shared record, on which each trace is a full walk. */
enum { CONTEXTS_MAX = 16384, LOOK_FIRST = 64 };

/* The contexts, ordered by their lowest address. No two overlap. */
static struct incstack__record *by_low[CONTEXTS_MAX];
static uint32_t look_at = LOOK_FIRST; /* the number of contexts at which to look for unused ones */
static uint32_t look_least = LOOK_FIRST;
static uint32_t looks;

static bool runs_on(const struct incstack__record *context, uintptr_t at)
{
	return at >= context->low && at < context->high;
}

/* Returns how many contexts begin at or below the address. */
static uint32_t begun(uintptr_t at)
{
	uint32_t low = 0;
	uint32_t high = incstack__recording.contexts_made;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (by_low[middle]->low <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct incstack__record *find(uintptr_t at)
{
	const uint32_t after = begun(at);

	return after > 0 && runs_on(by_low[after - 1], at) ? by_low[after - 1] : NULL;
}

struct incstack__record *incstack__record_context(uintptr_t at)
{
	struct incstack__record *context = find(at);

	if (!context)
		return NULL;
	context->tid = incstack__kernel_gettid();
	context->no_barriers = 0;
	context->used = looks;
	incstack_stack_set_owner(context->stack);
	return context;
}

/* ---- contexts that have ended ---------------------------------------------------------- */

/* Writes what a context has recorded, and releases its record. */
static void discard(uint32_t at)
{
	struct incstack__recording *r = &incstack__recording;
	struct incstack__record *context = by_low[at];
	struct incstack__record *_Atomic *link = &r->contexts;

	incstack_stack_set_owner(context->stack);
	if (!context->no_barriers)
		incstack_stack_forget(context->stack);
	incstack__record_flush(context);
	while (*link != context)
		link = &(*link)->next;
	*link = context->next;
	r->contexts_made--;
	for (; at < r->contexts_made; at++)
		by_low[at] = by_low[at + 1];
	incstack_stack_abandon(context->stack);
	incstack__record_discard(context);
}

/* Releases the records in a range in which another context is made. */
static void discard_overlapping(uintptr_t low, uintptr_t high)
{
	for (uint32_t i = begun(high - 1); i > 0 && by_low[i - 1]->high > low; i--)
		discard(i - 1);
}

/* Whether the caller is the thread on which the context ran last, and runs elsewhere now. The
 * context was not left by swapcontext, so its first function may have returned. The context needs
 * no record if it has no barriers. */
static bool is_elsewhere(const struct incstack__record *context, uintptr_t at)
{
	return context->tid == incstack__kernel_gettid() && !runs_on(context, at) &&
	       !incstack__stack_is_patched(context->stack);
}

/* Whether a record can be released, because the stack of its context is unmapped, or because the
 * record was not used since the last look and nothing is lost with it. */
static bool may_go(const struct incstack__record *context, uintptr_t at)
{
	if (!incstack__page_readable(context->high - sizeof(uintptr_t)))
		return true;
	return context->used != looks && !context->comes_back &&
	       (context->no_barriers || is_elsewhere(context, at));
}

/* Releases unused records, each time the number of records has doubled. */
static void discard_unused(uintptr_t at)
{
	const uint32_t *made = &incstack__recording.contexts_made;

	if (*made < look_at)
		return;
	for (uint32_t i = *made; i > 0; i--)
		if (may_go(by_low[i - 1], at))
			discard(i - 1);
	looks++;
	look_at = 2 * *made > look_least ? 2 * *made : look_least;
	if (look_at > CONTEXTS_MAX)
		look_at = CONTEXTS_MAX;
}

/* If a context is resumed whose record was released, too few records were kept. From now on one
 * more record is kept. Such a context is recognized by the word below the saved stack pointer,
 * which is the return address of the swapcontext call that left it. */
static void keep_more_after_comeback(uintptr_t sp, uintptr_t low, uintptr_t resumed_at)
{
	const uintptr_t *behind = (const uintptr_t *)sp - 1;

	if (sp % sizeof(*behind) != 0 || sp < low + sizeof(*behind) || *behind != resumed_at ||
	    look_least == CONTEXTS_MAX)
		return;
	look_least++;
	if (look_at < look_least)
		look_at = look_least;
}

/* ---- switches -------------------------------------------------------------------------- */

void incstack__record_context_leave(uintptr_t at, bool by_jump)
{
	struct incstack__record *context = incstack__record_context(at);

	if (!context)
		return;
	context->comes_back = by_jump;
	incstack_stack_reserve(context->stack, INCSTACK__RESERVE_BYTES);
	if (incstack_stack_set_mode(context->stack, incstack__recording.mode) == 0)
		context->no_barriers = 1;
}

static struct incstack__record *make(uintptr_t low, uintptr_t high)
{
	struct incstack__recording *r = &incstack__recording;
	struct incstack__record *context = incstack__spool_record();

	if (!context)
		return NULL;
	context->low = low;
	context->high = high;
	if (incstack__record_prepare(context, incstack__record_number()) != 0 ||
	    incstack_stack_create(r->runtime, low, high, &context->stack) != 0) {
		incstack__record_discard(context);
		return NULL;
	}
	incstack__stack_remember(context->stack);
	incstack_stack_reserve(context->stack, INCSTACK__RESERVE_BYTES);
	incstack__record_publish(context);
	return context;
}

static void add(struct incstack__record *context)
{
	struct incstack__recording *r = &incstack__recording;
	const uint32_t at = begun(context->low);

	for (uint32_t i = r->contexts_made; i > at; i--)
		by_low[i] = by_low[i - 1];
	by_low[at] = context;
	r->contexts_made++;
	context->next = r->contexts;
	atomic_store_explicit(&r->contexts, context, memory_order_release);
}

/* Makes the record of a context that is about to run. swapcontext also saves a thread's own
 * context, whose uc_stack does not describe its stack. The thread's context gets no record. */
void incstack__record_context_enter(const void *ucontext)
{
	struct incstack__recording *r = &incstack__recording;
	const ucontext_t *to = ucontext;
	const uintptr_t sp = (uintptr_t)to->uc_mcontext.gregs[REG_RSP];
	const uintptr_t base = (uintptr_t)to->uc_stack.ss_sp;
	const uintptr_t low = (base + 7) & ~(uintptr_t)7;
	const uintptr_t high = (base + to->uc_stack.ss_size) & ~(uintptr_t)7;
	struct incstack__record *context = incstack__record_context(sp);

	if (sp < low || sp >= high || (context && context->low == low && context->high == high))
		return;
	discard_overlapping(low, high);
	keep_more_after_comeback(sp, low, (uintptr_t)to->uc_mcontext.gregs[REG_RIP]);
	discard_unused((uintptr_t)__builtin_frame_address(0));
	if (r->contexts_made == CONTEXTS_MAX) {
		incstack__record_note(INCSTACK__NOTE_MANY_CONTEXTS);
		return;
	}
	context = make(low, high);
	if (!context)
		return;
	context->tid = incstack__kernel_gettid();
	context->used = looks;
	add(context);
}

void incstack__record_contexts_flush(pid_t tid, uintptr_t at, const struct incstack_top *held,
				     bool last)
{
	for (struct incstack__record *c = incstack__recording.contexts; c; c = c->next) {
		if (c->tid != tid || incstack_stack_set_owner(c->stack) != 0)
			continue;
		if (!c->no_barriers && !runs_on(c, at)) {
			if (!last)
				continue;
			incstack_stack_forget(c->stack);
		} else if (!c->no_barriers && held) {
			incstack__interrupted_settle(c, held);
		}
		incstack__record_flush(c);
	}
}

static bool lives(pid_t tid)
{
	for (const struct incstack__record *i = incstack__recording.threads; i; i = i->next)
		if (i->tid == tid)
			return true;
	return false;
}

/* Writes the contexts that ran last on threads that have ended. */
void incstack__record_contexts_flush_rest(bool last)
{
	for (struct incstack__record *c = incstack__recording.contexts; c; c = c->next)
		if (!lives(c->tid))
			incstack__record_contexts_flush(c->tid, 0, NULL, last);
}
