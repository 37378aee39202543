/* SPDX-License-Identifier: MIT
 *
 * A sample in a signal handler: taken at once where the embedder describes what was interrupted,
 * otherwise put into the queue.
 */
#include "kind.h"
#include "queue.h"

/* Asks the embedder what was interrupted. */
static int ask(const stack *s, const void *ucontext, struct incstack_top *top)
{
	const struct incstack_embedder *e = &s->runtime->embedder;
	const struct incstack_interruption at = {
		.ucontext = ucontext,
		.identity = s->identity,
		.low = s->given.low,
		.high = s->given.high,
	};
	*top = (struct incstack_top){0};
	return e->signals.interrupted(s->runtime->context, &at, top);
}

/* Reads where a frame that is about to return will go on. Without that there is no promise. */
static void read_caller(const stack *s, struct queued *what)
{
	const uintptr_t slot = what->top.slot;
	if (!(what->top.flags & INCSTACK_TOP_CALLER_STAYS))
		return;
	if (slot >= s->given.low && slot < s->given.high)
		what->caller = incstack_slot_read((const uintptr_t *)slot);
	if (!what->caller)
		what->top.flags &= ~(uint32_t)INCSTACK_TOP_CALLER_STAYS;
}

/* Takes the sample now. Returns an error of incstack_stack_sample if that is impossible. */
static int sample_now(stack *s, uint64_t id, uint64_t weight, const struct incstack_top *top)
{
	struct incstack_top now = *top;
	now.flags = INCSTACK_TOP_INTERRUPTED;
	now.slot = 0;
	return s->kind->sample_described(s, id, weight, &now);
}

static enum incstack_signal_failure failure_of(int error)
{
	switch (error) {
	case INCSTACK_EBUSY:
		return INCSTACK_FAILED_BUSY;
	case INCSTACK_EROOM:
		return INCSTACK_FAILED_ROOM;
	case INCSTACK_ETHREAD:
		return INCSTACK_FAILED_OWNER;
	case INCSTACK_ELIMIT:
		return INCSTACK_FAILED_FULL;
	case INCSTACK_EUNWIND:
		return INCSTACK_FAILED_UNWIND;
	default:
		return INCSTACK_FAILED_STATE;
	}
}

/* The sample that was refused is not lost, because it goes into the queue. */
static void uncount_lost(stack *s, int error)
{
	s->stats.lost_busy -= error == INCSTACK_EBUSY;
	s->stats.lost_limit -= error == INCSTACK_EROOM;
	s->stats.lost_unwind -= error == INCSTACK_EUNWIND;
}

static int fail(stack *s, enum incstack_signal_failure why, int error)
{
	count_failure(s, why, 1);
	return error;
}

/* Puts the request, which was refused for the given error, into the queue. */
static int enqueue(stack *s, struct queued *what)
{
	if (!s->signals.queue)
		return fail(s, failure_of(what->reason), what->reason);
	uncount_lost(s, what->reason);
	read_caller(s, what);
	if (!incstack__queue_put(s, what))
		return fail(s, INCSTACK_FAILED_FULL, INCSTACK_ELIMIT);
	return INCSTACK_QUEUED;
}

int incstack_stack_sample_signal(struct incstack_stack *s, uint64_t id, uint64_t weight,
				 const void *ucontext)
{
	if (!s || !ucontext || !s->runtime || !s->runtime->embedder.signals.interrupted)
		return INCSTACK_EINVAL;
	count_requests(&s->signals.requests, 1);
	if (s->owner != thread_self())
		return fail(s, INCSTACK_FAILED_OWNER, INCSTACK_ETHREAD);
	struct queued what = {.id = id, .weight = weight, .count = 1};
	int described = ask(s, ucontext, &what.top);
	if (described < 0)
		return fail(s, INCSTACK_FAILED_STATE, described);
	what.reason = described ? sample_now(s, id, weight, &what.top) : lose_sample(s);
	if (what.reason)
		return enqueue(s, &what);
	count_requests(&s->signals.in_handler, 1);
	return 0;
}
