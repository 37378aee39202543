/* SPDX-License-Identifier: MIT
 *
 * The sample: a trace, its top frame object, and a walk that stops at the first
 * known frame or at a new barrier (ICPE'15 section 5.2, "Taking a sample").
 *
 * incstack_stack_sample() tries the fast path (the second half of this file), in which one fast
 * walk makes the objects of ordinary frames. If the fast walk stops at a frame that is not
 * ordinary, the general walk of walk.c continues (continue_slowly). All other samples take the slow
 * path: take_slowly(), then the `sample` of the stack's kind, which is incstack__machine_sample()
 * for machine stacks.
 *
 * Objects and traces are written to the free memory of the arena first, and counted when they are
 * complete (I8). Objects count up to arena.object, traces down to arena.limit. So nothing half
 * written counts after a jump out of a signal handler in the middle of a sample.
 */
#include "barrier.h"
#include "decode.h"
#include "distance.h"
#include "fast_walk.h"
#include "fault.h"
#include "operation.h"
#include "queue.h"
#include "remembered.h"
#include "sample.h"
#include "top.h"
#include "walk.h"

static inline uint32_t misaligned(const struct incstack_top *top)
{
	return (uint32_t)((top->sp | top->slot) % sizeof(uintptr_t));
}

/* Writes a trace and its top, but counts neither. The caller has checked that there is room for
 * both. */
static inline trace *begin(stack *s, uint64_t id, uint64_t weight, uintptr_t pc, uintptr_t sp,
			   uint32_t flags)
{
	object *top = s->arena.object;
	trace *t = s->arena.limit - 1;
	t->next = NULL;
	t->id = id;
	t->weight = weight;
	t->top = top;
	*top = (object){top + 1, pc, sp, -1, flags};
	return t; /* the caller fills in `old` before finish() */
}

/* Prefetches the cache lines that the next sample will write. The time of a sample depends on its
 * stores, which lines that are missing in the L1 cache would delay. */
static inline void expect_another(const stack *s, const trace *t)
{
	__builtin_prefetch((const char *)s->arena.object + 64, 1);
	__builtin_prefetch((const char *)s->arena.object + 128, 1);
	__builtin_prefetch((const char *)t - 64, 1);
}

/* Links the trace, which is complete with all objects that the walk made. */
static inline void finish(stack *s, trace *t)
{
	atomic_signal_fence(memory_order_seq_cst);
	*s->last = t;
	s->last = (trace **)&t->next;
	s->samples++;
	expect_another(s, t);
}

/* Returns the flags of the object of a top. `flags` are those of the top, whose frame is `at`. */
static inline uint32_t flags_of(const struct cursor *at, uint32_t flags)
{
	return OBJECT_ORDINARY | (at->exact ? INCSTACK_OBJECT_EXACT : 0u) |
	       (flags & INCSTACK_TOP_DECODE_NOW ? OBJECT_DECODE_NOW : 0u) |
	       (flags & INCSTACK_TOP_INTERRUPTED ? INCSTACK_OBJECT_INTERRUPTED : 0u);
}

/* Where a walk over the callers of a top begins. */
struct callers {
	struct cursor at; /* the frame of the top */
	bool interrupted;
	const struct fast_walk *fast; /* if not null, the walk continues after this fast walk */
};

/* Walks over the callers of the top, ordinary or not. */
static void walk(stack *s, object *top, const struct callers *from)
{
	const bool interrupted = from->interrupted;
	uint32_t distance =
		interrupted && !s->walk_limit ? 1 : s->walk_limit; /* never patch its own slot */
	const struct walker w = {stepper_of(s, interrupted ? ASK_NEVER : ASK_DIRECTLY), s, false,
				 distance, 0};
	struct path p = {.at = from->at,
			 .child = top,
			 .known = s->newest,
			 .here = inside(s, from->at.sp),
			 .no_thunk = from->fast && from->fast->stop == STOP_SPENT};
	uint64_t planted = s->stats.planted;
	set_newest(s, from->fast ? incstack__walk_continue(&w, &p, *from->fast)
				 : walk_callers(&w, &p));
	if (s->stats.planted == planted)
		distance_rent(s, p.n + 1);
	else
		incstack__distance_renew(s);
}

/* Makes the object of a top with these flags, whose frame is `at`, and the objects of its callers.
 * There is room for at least one object. */
object *incstack__sample_walk(stack *s, const struct cursor *at, uint32_t flags)
{
	const struct callers from = {*at, false, NULL};
	object *top = s->arena.object;
	*top = (object){NULL, at->pc, at->sp, -1, flags_of(at, flags)};
	atomic_signal_fence(memory_order_seq_cst);
	s->arena.object++;
	walk(s, top, &from);
	return top;
}

/* Completes a trace whose top is the youngest known frame, as top_enter() has found out. */
static void complete_newest(stack *s)
{
	trace *t = s->arena.limit - 1;
	s->newest->flags |= INCSTACK_OBJECT_FILLED;
	t->top = t->old = s->newest;
	s->arena.limit = t;
	finish(s, t);
}

/* Links a trace after its walk. */
void incstack__sample_finish(stack *s, trace *t)
{
	t->old = s->found.known;
	s->tally.all_new += !s->found.known;
	finish(s, t);
	distance_observe(s, t);
}

/* Completes a trace that begin() has written but not counted. The trace is right below the
 * limit, and its top is the next object. */
static void complete(stack *s, const struct callers *from)
{
	trace *t = s->arena.limit - 1;
	object *top = s->arena.object;
	top->function = from->at.pc;
	top->parent = NULL;
	s->arena.limit = t;
	atomic_signal_fence(memory_order_seq_cst);
	s->arena.object++;
	walk(s, top, from);
	incstack__sample_finish(s, t);
}

/* Begins a trace whose top is the next object. incstack__sample_finish() must follow. */
trace *incstack__sample_begin(stack *s, uint64_t id, uint64_t weight)
{
	trace *t = begin(s, id, weight, 0, 0, 0);
	s->arena.limit = t;
	return t;
}

/* Whether there is room for a trace and its top. If not, the sample is lost. */
bool incstack__sample_fits(stack *s)
{
	const bool fits = arena_fits(&s->arena, 2) || incstack__arena_next(&s->arena);
	s->stats.lost_limit += !fits;
	return fits;
}

/* Whether a sample may begin where a signal has interrupted the thread. The rule of the interrupted
 * frame must be found now, without the functions that a handler may not call. */
static bool can_begin_interrupted(stack *s, const struct cursor *at)
{
	const struct stepper steps = stepper_of(s, ASK_NEVER);
	return at->pc && incstack__rule_of(&steps, at->pc, at->exact);
}

int incstack__machine_sample(stack *s, uint64_t id, uint64_t weight, const struct incstack_top *top)
{
	struct callers from; /* an initializer would clear it by a slow string instruction */
	from.interrupted = top->flags & INCSTACK_TOP_INTERRUPTED;
	from.fast = NULL;
	if (misaligned(top))
		return INCSTACK_EINVAL;
	const object *known = top_enter(s, top, &from.at);
	if (from.interrupted && !can_begin_interrupted(s, &from.at))
		return lose_sample(s);
	if (!incstack__sample_fits(s))
		return INCSTACK_EROOM;
	if (FAULT(FAULT_INTERRUPTED_AS_CALL) && from.interrupted)
		from.at.exact = false;
	begin(s, id, weight, from.at.pc, from.at.sp, flags_of(&from.at, top->flags));
	if (known)
		complete_newest(s);
	else
		complete(s, &from);
	return 0;
}

object *incstack__machine_frames(stack *s, const struct incstack_top *poll)
{
	struct cursor at;
	object *known = top_enter(s, poll, &at);
	if (!known)
		return incstack__sample_walk(s, &at, poll->flags);
	return s->found.known = known;
}

/* Adds a trace whose top and callers are given. If `caller` is not null, it is copied and comes
 * between the top and its parent. If `now` is not null, the top is decoded now. Returns false if
 * there is no room. */
bool incstack__sample_add(stack *s, const struct queued *what, object top, const object *caller,
			  const object *old, const struct incstack_frame *now)
{
	if (!arena_fits(&s->arena, 3) && !incstack__arena_next(&s->arena))
		return false;
	trace *t = begin(s, what->id, what->weight, top.function, top.address, top.flags);
	object *o = s->arena.object;
	*o = top;
	if (caller) {
		o->parent = o + 1;
		o[1] = *caller;
	}
	s->arena.limit = t;
	atomic_signal_fence(memory_order_seq_cst);
	s->arena.object += caller ? 2 : 1;
	if (now && !incstack__decode(s, o, now, ASK_DIRECTLY, true))
		return false;
	t->old = old;
	s->tally.all_new += !old;
	finish(s, t);
	return true;
}

/* Takes a sample in a signal handler. Rules that were missing are learned by the next sample
 * outside of handlers. */
static int take_in_handler(stack *s, uint64_t id, uint64_t weight, const struct incstack_top *top)
{
	int error = s->kind->sample(s, id, weight, top);
	if (atomic_load_explicit(&s->runtime->wanting, memory_order_relaxed))
		s->slow_reasons |= SLOW_RULES_WANTED;
	return error;
}

static int take_directly(stack *s, uint64_t id, uint64_t weight, const struct incstack_top *top)
{
	if (s->limbo)
		incstack__limbo_empty(s);
	if (s->slow_reasons & SLOW_RULES_WANTED) {
		s->slow_reasons &= ~(uint32_t)SLOW_RULES_WANTED;
		incstack__rule_learn_wanted(s->runtime);
	}
	return s->kind->sample(s, id, weight, top);
}

/* Takes any sample, within an operation. */
__attribute__((noinline)) static int take_slowly(stack *s, uint64_t id, uint64_t weight,
						 const struct incstack_top *top)
{
	if (!top || !s->kind->takes_top(top))
		return INCSTACK_EINVAL;
	if (top->flags & INCSTACK_TOP_INTERRUPTED)
		return take_in_handler(s, id, weight, top);
	return take_directly(s, id, weight, top);
}

__attribute__((noinline)) static int sample(stack *s, uint64_t id, uint64_t weight,
					    const struct incstack_top *top)
{
	int error = enter(s);
	if (error)
		return error;
	error = take_slowly(s, id, weight, top);
	leave(s);
	return error;
}

/* ---- the fast path of a sample: one fast walk over ordinary frames --------------- */

/* Whether a sample may take the fast path. Its frames may still turn out not to be ordinary.
 * Called within the operation, because before the operation a sample in a signal handler could
 * use up the room that was just checked. */
static inline bool can_sample_fast(const stack *s, const struct incstack_top *top)
{
	return top && !(top->flags | s->slow_reasons | s->limbo | misaligned(top)) &&
	       arena_fits(&s->arena, 2);
}

/* Counts the objects of a fast walk, up to `end`, and the trace, which is right below the limit. A
 * jump out of a signal handler may come between the stores, so each object and the trace is
 * complete before it counts (I8). */
static inline trace *add_objects(stack *s, object *end, object *known)
{
	trace *t = s->arena.limit - 1;
	t->old = known;
	atomic_signal_fence(memory_order_seq_cst);
	s->arena.object = end;
	s->arena.limit = t;
	return t;
}

/* Called when the fast walk has spent its budget of callers. Makes the object o for the ordinary
 * frame ahead and plants its barrier. Returns what end_elsewhere() does next: STOP_KNOWN if the
 * barrier was planted, STOP_SPENT if no thunk is left, and STOP_OTHER if a barrier is impossible
 * for another reason. So STOP_SPENT has another meaning after this function than after a fast
 * walk. */
__attribute__((noinline)) static enum stop plant(stack *s, object *o, uintptr_t pc, uintptr_t sp,
						 uintptr_t fp)
{
	if (s->mode != INCSTACK_MODE_PATCH ||
	    !arena_fits(&s->arena, (size_t)(o + 1 - s->arena.object)))
		return STOP_OTHER;
	*o = skeleton(pc, sp, s->newest);
	return incstack__barrier_plant(s, o, fp) ? STOP_KNOWN : STOP_SPENT;
}

/* Hands the rest of the sample to the general walk, because a caller is not ordinary, the chunk is
 * full, or no thunk is left. The walk continues from the last frame of the fast walk, whose objects
 * end at `end`. If top_enter() finds that the top is the youngest known frame, the objects of the
 * fast walk are not counted. */
__attribute__((noinline)) static int continue_slowly(stack *s, object *end, uintptr_t fp,
						     enum stop stop, uintptr_t ahead_pc,
						     uintptr_t ahead_sp, uintptr_t ahead_fp)
{
	const object *top = s->arena.object;
	const struct incstack_top from = {.pc = top->function, .sp = top->address, .fp = fp};
	const struct fast_walk r = {end, fp, stop, {ahead_pc, ahead_sp, ahead_fp}, false};
	struct callers callers = {.fast = &r};
	if (!from.pc)
		return INCSTACK_EINVAL;
	if (top_enter(s, &from, &callers.at))
		complete_newest(s);
	else
		complete(s, &callers);
	return 0;
}

static inline void finish_fast(stack *s, trace *t, uint64_t walked)
{
	s->walked += walked;
	finish(s, t);
	distance_observe(s, t);
}

/* Ends a sample whose fast walk did not stop at a live barrier. Nothing here needs r as a whole. So
 * the compiler passes the members of r in registers, and incstack_stack_sample needs no stack
 * frame. */
__attribute__((noinline)) static int end_elsewhere(stack *s, struct fast_walk r)
{
	uint64_t walked = (uint64_t)(r.end - s->arena.object);
	trace *t;
	if (r.stop == STOP_SPENT)
		r.stop = plant(s, r.end, r.ahead.pc, r.ahead.sp, r.ahead.fp);
	if (r.stop == STOP_KNOWN) {
		t = add_objects(s, r.end + 1, s->newest);
		s->tally.all_new += !s->newest;
		set_newest(s, r.end);
		incstack__distance_renew(s);
	} else if (r.stop == STOP_BASE && !s->newest) {
		distance_rent(s, (uint32_t)walked);
		*r.end = (object){NULL, r.ahead.pc, r.ahead.sp, -1,
				  OBJECT_ORDINARY | INCSTACK_OBJECT_BASE};
		t = add_objects(s, r.end + 1, NULL);
		s->tally.all_new++;
		walked++;
	} else {
		return continue_slowly(s, r.end, r.fp, r.stop, r.ahead.pc, r.ahead.sp, r.ahead.fp);
	}
	finish_fast(s, t, walked);
	return 0;
}

/* The fast path. The fast walk needs the registers, so almost no value is kept across it. What the
 * walk cannot have changed is read from the stack object again. */
__attribute__((always_inline)) static inline int take_fast(stack *s, uint64_t id, uint64_t weight,
							   uintptr_t pc, uintptr_t sp, uintptr_t fp,
							   struct remembered_walk *walk)
{
	object *first = s->arena.object + 1;
	begin(s, id, weight, pc, sp, OBJECT_ORDINARY);
	struct fast_walk r = fast_walk(s, pc, sp, fp, s->newest, &s->newest_thunk, first,
				       fast_walk_end(s, first, s->walk_limit), -1);
	if (__builtin_expect(r.stop != STOP_KNOWN, 0))
		return end_elsewhere(s, r);
	uint64_t walked = (uint64_t)(r.end - s->arena.object);
	r.end[-1].parent = s->newest;
	distance_rent(s, (uint32_t)walked);
	trace *t = add_objects(s, r.end, s->newest);
	if (walk && !r.by_fp)
		remember(walk, t->top, r.end);
	finish_fast(s, t, walked);
	return 0;
}

/* Whether the next sample may share the objects of an earlier walk: distance.c looks at the objects
 * of some samples. */
static inline bool may_share(const stack *s)
{
	return s->samples + 1 < s->observe_at;
}

/* Takes a sample whose frames are those of an earlier walk. There is room for a trace. To compare a
 * frame costs a fourth of what it costs to capture it (distance.c). */
static inline void share(stack *s, uint64_t id, const struct remembered_walk *walk)
{
	enum { COMPARED = 4 };
	trace *t = s->arena.limit - 1;
	uint64_t walked = (uint64_t)(walk->end - walk->top);
	*t = (trace){NULL, id, 0, walk->top, s->newest};
	distance_rent(s, (uint32_t)walked / COMPARED);
	atomic_signal_fence(memory_order_seq_cst);
	s->arena.limit = t;
	finish_fast(s, t, walked);
}

/* Debug builds walk again, and count differences. */
static inline void check_shared(stack *s, const struct remembered_walk *walk, uintptr_t fp)
{
#ifdef INCSTACK_DEBUG
	struct cursor at = {.pc = walk->top->function, .sp = walk->top->address, .fp = fp};
	s->broken += !incstack__fast_walk_agrees(s, at, walk->top + 1, walk->end, NULL);
#else
	(void)s;
	(void)walk;
	(void)fp;
#endif
}

int incstack_stack_sample(struct incstack_stack *s, uint64_t id, uint64_t weight,
			  const struct incstack_top *top)
{
	int error;
	if (__builtin_expect(!s || s->owner != thread_self() || s->busy, 0))
		return sample(s, id, weight, top);
	s->busy = stack_pointer();
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(can_sample_fast(s, top), 1))
		error = take_fast(s, id, weight, top->pc, top->sp, top->fp, NULL);
	else
		error = take_slowly(s, id, weight, top);
	leave(s);
	return error;
}

/* incstack__sample_caller() outside of the fast path. */
__attribute__((noinline, cold)) static int sample_caller(stack *s, uint64_t id, uintptr_t pc,
							 uintptr_t sp, uintptr_t fp)
{
	const struct incstack_top top = {.pc = pc, .sp = sp, .fp = fp};
	return sample(s, id, 0, &top);
}

/* incstack_stack_sample() for a caller whose frame is in registers. A struct incstack_top would be
 * stored and loaded again, and each of its members tested. */
int incstack__sample_caller(struct incstack_stack *s, uint64_t id, uintptr_t pc, uintptr_t sp,
			    uintptr_t fp, size_t least)
{
	int error;
	if (__builtin_expect(arena_room(&s->arena) < least + frames_room(s->high - sp), 0))
		return INCSTACK_EROOM;
	if (__builtin_expect(s->owner != thread_self() || s->busy, 0))
		return sample_caller(s, id, pc, sp, fp);
	s->busy = stack_pointer();
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(s->slow_reasons | s->limbo | sp % sizeof(uintptr_t) ||
				     !arena_fits(&s->arena, 2),
			     0)) {
		leave(s);
		return sample_caller(s, id, pc, sp, fp);
	}
	struct remembered_walk *walk = remembered_at(s, pc, sp);
	if (walk && may_share(s) && remembered_holds(s, walk, pc, sp)) {
		check_shared(s, walk, fp);
		share(s, id, walk);
		leave(s);
		return 0;
	}
	error = take_fast(s, id, 0, pc, sp, fp, walk);
	leave(s);
	return error;
}
