/* SPDX-License-Identifier: MIT
 *
 * Handles a barrier that was hit: by a return (the trampoline calls incstack__returned), by
 * an unwinder (it calls the thunks' personality routine), or because the embedder announced
 * it. The frame that is about to run again is captured, and the barrier moves towards the
 * base (ICPE'15 section 5.2, "Intercepting a return").
 */
#include "aside.h"
#include "barrier.h"
#include "barrier_hit.h"
#include "fast_walk.h"
#include "fault.h"
#include "operation.h"
#include "queue.h"
#include "reset.h"
#include "unwinder.h"
#include "walk.h"

/* Whether a barrier may guard p, whose callers are known. A decoded position cannot be compared
 * with the slot. A position at which a walk was cut may have no rule. A return slot at a signal
 * must not be patched for two reasons: an interrupted callee may be about to copy its return
 * address, and unwinders recognize a signal frame by the address in that slot. A frame that a
 * signal interrupted has no return slot, because no callee returns to it. */
static bool may_plant(const object *p, const object *callee, uintptr_t plant_from)
{
	uintptr_t slot = (uintptr_t)object_slot(p), word = stack_word(slot);
	const uint32_t never = INCSTACK_OBJECT_EXACT | INCSTACK_OBJECT_TRUNCATED |
			       INCSTACK_OBJECT_SIGNAL | OBJECT_NO_BARRIER;
	if (callee->flags & (INCSTACK_OBJECT_EXACT | INCSTACK_OBJECT_SIGNAL) || p->flags & never ||
	    slot < plant_from || is_thunk(word))
		return false;
	return !(p->flags & INCSTACK_OBJECT_RAW) || word == p->function;
}

/* Plants the next barrier without a walk, because all callers of o are known and cannot have
 * changed. The guarded object becomes the youngest known one (I3). If nothing can be guarded,
 * no object is known. */
static void move_down(stack *s, object *o, uintptr_t plant_from)
{
	uint32_t n = s->distance.value;
	const object *callee = o;
	object *p = physical_parent(o);
	bool in_vain = false; /* no thunk is left, so look only for an older barrier */
	for (; p && !(p->flags & OBJECT_BARRIER); callee = p, p = physical_parent(p)) {
		if (n) {
			n--;
			continue;
		}
		if (in_vain || !may_plant(p, callee, plant_from))
			continue;
		if (incstack__barrier_plant(s, p, 0))
			break;
		in_vain = true;
	}
	set_newest(s, p);
}

void incstack__machine_passed(stack *s, object *o, uintptr_t fp, enum ask ask, uintptr_t plant_from)
{
	const struct walker w = {stepper_of(s, ask), s, false, s->distance.value, plant_from};
	incstack__barrier_free_later(s, o, object_slot(o));
	o->flags |= INCSTACK_OBJECT_FILLED;
	if (!(o->flags & OBJECT_GAP) || (FAULT(FAULT_GAP_FORGOTTEN) && o->parent))
		move_down(s, o, plant_from);
	else
		set_newest(s, incstack__gap_fill(&w, o, fp));
}

/* The barrier of o was hit. Removes from the known chain the frames above it, which are gone.
 * Returns false if o is no longer in the known chain. */
static inline bool drop_younger(stack *s, const object *o)
{
	while (s->newest && s->newest != o)
		set_newest(s, incstack__known_pop(s, s->newest));
	return s->newest;
}

/* The fast path of a return into the frame of o, the youngest known object. It captures the
 * callers up to the next ordinary frame at the barrier distance, or up to the next barrier.
 * Returns false, having done nothing, if a frame on the way is not ordinary. */
static bool pass_quickly(stack *s, object *o, uintptr_t fp)
{
	object *first = s->arena.object, *known = (object *)o->parent;
	uintptr_t thunk = barrier_word(known);
	struct fast_walk r = fast_walk(s, o->function, o->address, fp, known, &thunk, first,
				       fast_walk_end(s, first, s->distance.value), -1);
	if (r.stop == STOP_SPENT && arena_fits(&s->arena, (size_t)(r.end - first) + 1)) {
		object *next = r.end++;
		*next = skeleton(r.ahead.pc, r.ahead.sp, known);
		incstack__barrier_reuse(s, o, next, r.ahead.fp);
		s->newest = next; /* newest_thunk stays, because `next` has the same thunk */
		s->walked += (uint64_t)(r.end - first);
		commit(s, o, r.end, known);
	} else if (r.stop == STOP_KNOWN) {
		incstack__barrier_free(s, o);
		set_newest(s, known);
		s->walked += (uint64_t)(r.end - first) + 1;
		commit(s, o, r.end, known);
	} else {
		return false;
	}
	o->flags = (o->flags & ~(uint32_t)OBJECT_GAP) | INCSTACK_OBJECT_FILLED;
	return true;
}

/* The only function that the trampoline calls. It gets the cell of the thunk and the frame
 * pointer of the frame that runs next, and returns the address to resume at. If an operation
 * was in progress (old_busy), a longjmp has left it. */
uintptr_t incstack__returned(struct incstack__cell *cell, uintptr_t fp, uintptr_t old_busy)
{
	stack *s = cell->stack;
	uintptr_t resume = cell->resume;
	if (__builtin_expect(old_busy != 0, 0))
		incstack__reset_stack(s, true);
	bool youngest = (uintptr_t)cell - INCSTACK__POOL_BYTES == s->newest_thunk;
	object *o = youngest ? s->newest : incstack__barrier_object(cell);
	s->stats.returns++;
	s->distance.returns++;
	if (s->limbo)
		incstack__limbo_empty(s);
	if (youngest && o->flags & OBJECT_GAP && !FAULT(FAULT_GAP_FORGOTTEN) &&
	    pass_quickly(s, o, fp))
		return resume;
	if (!o)
		incstack__barrier_revived(s, cell);
	else if (drop_younger(s, o))
		incstack__machine_passed(s, o, fp, ASK_SAVED, 0);
	return resume;
}

/* ---- exceptions and forced unwinding ---------------------------------------- */

enum { UNWIND_CLEANUP_PHASE = 2, UNWIND_HANDLER_FRAME = 4 }; /* actions */
enum { UNWIND_INSTALL = 7, UNWIND_CONTINUE = 8 };
enum { UNWIND_RAX = 0, UNWIND_RDX = 1, UNWIND_RBP = 6 };

/* The handler is in the thunk's caller. Thunk and caller have the same frame address, so the
 * unwinder stops at the thunk. Unwinding resumes without the thunk. */
static int leave_thunk(const struct incstack__unwinder *u, struct _Unwind_Context *context,
		       void *exception, uintptr_t resume)
{
	u->set_gr(context, UNWIND_RAX, (uintptr_t)exception);
	u->set_gr(context, UNWIND_RDX, resume);
	u->set_ip(context, u->landing);
	return UNWIND_INSTALL;
}

/* Captures the frames that are about to be popped, down to the next known frame. It patches
 * nothing; the next sample plants a barrier. */
static int pass(const struct incstack__unwinder *u, int actions, void *exception,
		struct _Unwind_Context *context)
{
	uintptr_t ip = u->get_ip(context);
	if (!is_thunk(ip))
		return UNWIND_CONTINUE;
	struct incstack__cell *cell = thunk_cell(ip);
	object *o = incstack__barrier_object(cell);
	stack *s = cell->stack;
	int next = actions & UNWIND_HANDLER_FRAME ? leave_thunk(u, context, exception, cell->resume)
						  : UNWIND_CONTINUE;
	if (!o || s->busy)
		return next;
	s->busy = (uintptr_t)__builtin_frame_address(0);
	s->stats.unwound++;
	if (drop_younger(s, o))
		incstack__machine_passed(s, o, u->get_gr(context, UNWIND_RBP), ASK_DIRECTLY,
					 UINTPTR_MAX);
	leave(s);
	return next;
}

/* Unwinders call it for each patched frame: when they search for a handler, and again in the
 * cleanup phase before they touch any frame further out. It lets unwinding continue, unless
 * the handler is in the direct caller. */
int incstack__thunk_personality(int version, int actions, uint64_t class, void *exception,
				struct _Unwind_Context *context)
{
	const uintptr_t *frame = __builtin_frame_address(0);
	struct incstack__unwinder u;
	(void)version;
	(void)class;
	if (incstack__unwinder_find(frame[1], &u))
		return actions & UNWIND_CLEANUP_PHASE ? pass(&u, actions, exception, context)
						      : UNWIND_CONTINUE;
	if (actions & UNWIND_HANDLER_FRAME)
		incstack__resume_aside(exception, frame);
	else
		incstack__step_aside(frame);
	return UNWIND_CONTINUE;
}

/* If the unwinding pops the frame of an interrupted operation, the operation ends. */
static void end_operation(stack *s, uintptr_t sp)
{
	if (s->owner != thread_self() || !s->busy || !s->kind->left_behind(s, s->busy, sp))
		return;
	incstack__reset_stack(s, true);
	leave(s);
}

int incstack_stack_unwinding_to(struct incstack_stack *s, uintptr_t sp)
{
	if (s)
		end_operation(s, sp);
	int error = enter(s);
	if (error)
		return error;
	error = s->kind->holds(s, sp, 0);
	if (error) {
		leave(s);
		return error;
	}
	incstack__limbo_empty(s);
	bool certain = s->kind->remove_popped(s, __builtin_frame_address(0));
	object *o = s->newest;
	while (o && (uintptr_t)object_slot(o) < sp) {
		if (certain && o->flags & OBJECT_BARRIER) {
			uintptr_t fp = incstack__barrier_fp(o);
			s->stats.unwound++;
			s->kind->passed(s, o, fp, ASK_DIRECTLY, sp);
			o = s->newest;
		} else {
			o = incstack__known_pop(s, o);
			set_newest(s, o);
		}
	}
	incstack__limbo_release(s, sp);
	incstack__queue_popped(s, sp);
	leave(s);
	return 0;
}

/* ---- the embedder announces a return ---------------------------------------- */

int incstack_stack_returned(struct incstack_stack *s, uintptr_t frame)
{
	int error = enter(s);
	if (error)
		return error;
	error = s->kind->announced(s, frame);
	leave(s);
	return error;
}
