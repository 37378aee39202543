/* SPDX-License-Identifier: MIT
 *
 * The drain of a queue: at a poll, each request of a signal handler becomes a trace. The frames from
 * the poll to the first known one are captured once, by the walk of a sample. The trace of a request
 * consists of its own top frame and of the callers that this walk has found.
 *
 * The interrupted frame is found by its return slot, if the embedder promises that it is still there. If it
 * was about to return and the embedder promises that its caller is still there, that is found in the same
 * way, and the trace has both frames where they were. Otherwise the trace begins with the youngest frame that may be one of its callers, as far as the
 * addresses tell, and is biased (JEP 518 marks such traces in the same way).
 */
#include "fault.h"
#include "operation.h"
#include "queue.h"
#include "retrieve.h"
#include "sample.h"

struct drain {
	stack *s;
	object *poll;       /* the youngest frame now */
	const object *seen; /* it and its callers were active in an earlier trace */
};

/* The frame of a request, and its caller, which may be null. `seen`: the caller was seen before. */
struct spot {
	object *frame, *caller;
	bool seen;
	bool returned; /* `frame` is the caller of the interrupted frame, which has returned */
};

/* Moves to the caller. A caller in a gap is captured first. */
static bool step(const struct drain *d, struct spot *at)
{
	at->frame = at->caller;
	at->seen |= at->frame == d->seen;
	if (!at->frame || (at->frame->flags & OBJECT_GAP && !incstack__gap_narrow(d->s, at->frame)))
		return false;
	at->caller = physical_parent(at->frame);
	at->seen |= at->caller == d->seen;
	return true;
}

/* The frame that stays, if one does. */
static bool find_frame(const struct drain *d, const struct incstack_top *top, struct spot *at)
{
	*at = (struct spot){.caller = d->poll};
	if (!(top->flags & (INCSTACK_TOP_STAYS | INCSTACK_TOP_CALLER_STAYS)))
		return false;
	at->returned = top->flags & INCSTACK_TOP_CALLER_STAYS;
	while (step(d, at))
		if (d->s->kind->is_promised(at->frame, at->caller, top))
			return true;
	return false;
}

/* The youngest frame that may be a caller of the interrupted one. */
static bool find_caller(const struct drain *d, const struct incstack_top *top, struct spot *at)
{
	*at = (struct spot){.caller = d->poll};
	while (step(d, at))
		if (d->s->kind->may_have_called(at->frame, top))
			return true;
	return false;
}

/* The flags that say how the chain of o ends: at the base, or truncated. */
static uint32_t end_of(const object *o)
{
	while (o->parent)
		o = o->parent;
	return o->flags & (INCSTACK_OBJECT_BASE | INCSTACK_OBJECT_TRUNCATED);
}

static object interrupted_top(const struct spot *at, const struct incstack_top *top)
{
	uint32_t flags = OBJECT_ORDINARY | INCSTACK_OBJECT_INTERRUPTED | INCSTACK_OBJECT_LATE;
	if (top->flags & INCSTACK_TOP_EXACT)
		flags |= INCSTACK_OBJECT_EXACT;
	if (top->flags & INCSTACK_TOP_DECODE_NOW)
		flags |= OBJECT_DECODE_NOW;
	if (!at->caller && !at->returned)
		flags |= end_of(at->frame);
	const bool at_poll = FAULT(FAULT_QUEUED_AT_POLL) && at->frame->flags & INCSTACK_OBJECT_RAW;
	return (object){at->caller, at_poll ? at->frame->function : top->pc, top->sp, -1, flags};
}

/* The caller of a frame that has returned, where it was. */
static object interrupted_caller(const struct spot *at, uintptr_t pc)
{
	const uint32_t end = at->caller ? 0 : end_of(at->frame);
	if (FAULT(FAULT_CALLER_AT_POLL) && at->frame->flags & INCSTACK_OBJECT_RAW)
		pc = at->frame->function;
	return (object){at->caller, pc, at->frame->address, -1, OBJECT_ORDINARY | end};
}

static object biased_top(const struct spot *at)
{
	const uint32_t kept = INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_EXACT | INCSTACK_OBJECT_RAW |
			      INCSTACK_OBJECT_BASE | INCSTACK_OBJECT_TRUNCATED |
			      INCSTACK_OBJECT_SIGNAL | OBJECT_DECODE_NOW;
	object top = *at->frame;
	top.flags = (top.flags & kept) | INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_LATE;
	/* A raw object may keep a rule there, which is no position. */
	top.position = top.flags & INCSTACK_OBJECT_RAW ? -1 : top.position;
	return top;
}

static void count_truncated(stack *s, const object *top)
{
	const uint32_t one = !!(top->flags & INCSTACK_OBJECT_TRUNCATED);
	s->arena.truncated += one;
	s->stats.truncated += one;
}

/* Adds the trace of a request. Returns false if there is no room. */
static bool add(struct drain *d, const struct queued *what, const struct spot *at, bool exact)
{
	stack *s = d->s;
	const object top = exact ? interrupted_top(at, &what->top) : biased_top(at);
	const struct incstack_frame frame = {top.function, top.address, what->top.fp,
					     INCSTACK_FRAME_EXACT, 0};
	const bool decodes =
		exact && top.flags & OBJECT_DECODE_NOW && s->runtime->embedder.code.decode;
	const object *old = at->seen ? at->caller : d->seen;
	const object caller = interrupted_caller(at, what->caller);
	if (!incstack__sample_add(s, what, top, exact && at->returned ? &caller : NULL, old,
				  decodes ? &frame : NULL))
		return false;
	if (!at->seen && at->caller)
		d->seen = at->caller;
	count_truncated(s, exact && at->returned ? &caller : &top);
	return true;
}

static void make_trace(struct drain *d, const struct queued *what)
{
	stack *s = d->s;
	struct spot at;
	bool exact = find_frame(d, &what->top, &at);
	if (!exact && !find_caller(d, &what->top, &at))
		count_failure(s, INCSTACK_FAILED_GONE, what->count);
	else if (!add(d, what, &at, exact))
		count_failure(s, INCSTACK_FAILED_ROOM, what->count);
	else if (exact)
		s->signals.from_queue += what->count;
	else
		s->signals.biased += what->count;
	incstack__queue_settled(s);
}

/* Captures the frames from the poll to the first known one, as a sample does, but makes no trace. Returns
 * the object of the poll, or null if there is no room. It may allocate. */
static object *capture(stack *s, const struct incstack_top *poll)
{
	if (!arena_fits(&s->arena, 1) && !incstack__arena_next(&s->arena))
		return NULL;
	return s->kind->frames(s, poll);
}

/* Turns the given number of requests into traces. Those that came in the meantime stay, but what
 * they have interrupted is this poll, after which their frames may end without another. */
static int drain(stack *s, const struct incstack_top *poll, uint32_t requests)
{
	struct queued what;
	int error = enter(s);
	if (error)
		return error;
	s->signals.queue->attempts = 0;
	struct drain d = {.s = s, .poll = capture(s, poll)};
	d.seen = s->found.known;
	while (d.poll && requests-- && s->signals.queue && incstack__queue_take(s, &what))
		make_trace(&d, &what);
	s->signals.drains++;
	incstack__queue_unsettle(s);
	leave(s);
	return d.poll ? 0 : INCSTACK_EROOM;
}

static size_t room_for(uint32_t requests)
{
	enum { OBJECTS_EACH = 5 };
	return requests * (OBJECTS_EACH * sizeof(object) + sizeof(trace)) + 4096;
}

/* The drain when a request waits, which is rare. */
__attribute__((noinline)) static int drain_waiting(stack *s, const struct incstack_top *poll,
						   uint32_t requests)
{
	if (!s->kind->takes_top(poll))
		return INCSTACK_EINVAL;
	int error = incstack_stack_reserve(s, room_for(requests));
	if (error == INCSTACK_EBUSY)
		return error;
	if (error)
		incstack__queue_unsettle(s);
	return error ? error : drain(s, poll, requests);
}

/* It is called at every poll. So only a poll that finds a request pays for the call that checks the top: no
 * walk begins at the other tops. */
int incstack_stack_queue_drain(struct incstack_stack *s, const struct incstack_top *poll)
{
	if (!s || !poll || poll->flags & INCSTACK_TOP_INTERRUPTED)
		return INCSTACK_EINVAL;
	if (s->owner != thread_self())
		return INCSTACK_ETHREAD;
	const uint32_t requests = incstack__queue_pending(s);
	return __builtin_expect(requests, 0) ? drain_waiting(s, poll, requests) : 0;
}
