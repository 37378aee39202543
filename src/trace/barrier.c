/* SPDX-License-Identifier: MIT
 *
 * Return barriers: plants and lifts them, in return slots. Kinds of stacks that have other barriers
 * use the numbers and the records of thunks only. Besides this file, three others write return
 * slots: retired.c restores the slots of vanished barriers, stack_change.c stores a resume address
 * for the embedder (incstack_stack_slot_write), and the trampoline (thunks.S) restores the slot
 * through which a return comes.
 *
 * Order of writes: the cell is filled before the slot shows the thunk (I12), and a
 * thunk is reused only when no slot and no unwinder can lead to it (I17, I18).
 */
#include "barrier.h"
#include "fault.h"

static uint32_t take(stack *s)
{
	uint32_t number = s->thunks.spare;
	if (FAULT(FAULT_THUNK_REUSED) && s->stats.planted % 64 == 63 && s->newest &&
	    s->newest->flags & OBJECT_BARRIER)
		return s->newest->flags >> OBJECT_SHIFT;
	if (!number)
		return incstack__thunk_take(s);
	s->thunks.spare = barrier_of(number)->next;
	return number;
}

static void put(uint32_t *list, uint32_t number, uintptr_t slot)
{
	struct barrier *b = barrier_of(number);
	b->object = NULL;
	b->fp = slot;
	b->retired = NOT_RETIRED;
	b->next = *list;
	*list = number;
}

static void put_retired(stack *s, uint32_t number)
{
	barrier_of(number)->next = s->thunks.retired;
	s->thunks.retired = number;
}

/* Retires the thunk of a barrier at `slot`, for the reason `why`. The slot, or a copy of it, may
 * still hold the thunk, or the trampoline may be serving the return. So the cell keeps its resume
 * address until reclaim() in retired.c finds that no return can come through the thunk. */
static void retire(stack *s, uint32_t number, uintptr_t slot, uint32_t why)
{
	struct barrier *b = barrier_of(number);
	b->fp = slot;
	b->retired = why;
	atomic_signal_fence(memory_order_seq_cst); /* before the barrier counts as not live (I24) */
	b->object = NULL;
	put_retired(s, number);
}

static void patch(stack *s, const object *o, uint32_t number)
{
	uintptr_t *slot = object_slot(o);
	uintptr_t resume = content(slot);
	const runtime *rt = s->runtime;
	if (FAULT(FAULT_STORE_FIRST)) {
		store(slot, thunk_address(number)); /* and the embedder reads it just then */
		if (rt->embedder.code.logical_pc)
			rt->embedder.code.logical_pc(rt->context, (uintptr_t)slot, resume);
	}
	*thunk_cell(thunk_address(number)) = (struct incstack__cell){resume, s};
	atomic_signal_fence(memory_order_seq_cst); /* the cell before the slot (I12) */
	store(slot, thunk_address(number));
}

/* Writes the record of the barrier first, then the slot (I24). */
static inline void intercept(stack *s, object *o, uintptr_t fp, uint32_t number)
{
	barrier_record(s, o, fp, number);
	patch(s, o, number);
}

/* Takes a thunk for a barrier. Returns 0 if there is none. */
uint32_t incstack__barrier_take(stack *s)
{
	uint32_t number = take(s);
	s->stats.no_thunk += !number;
	return number;
}

/* Takes a thunk back whose barrier could not be planted. */
void incstack__barrier_give_back(stack *s, uint32_t number)
{
	put(&s->thunks.spare, number, 0);
	s->stats.no_thunk++;
}

/* Intercepts the return into the frame of o by a thunk. Returns false if there is none. */
bool incstack__barrier_plant(stack *s, object *o, uintptr_t fp)
{
	uint32_t number = incstack__barrier_take(s);
	if (!number)
		return false;
	intercept(s, o, fp, number);
	return true;
}

static uint32_t number_of(const object *o)
{
	return o->flags >> OBJECT_SHIFT;
}

static void clear(object *o)
{
	o->flags &= OBJECT_FLAGS & ~(uint32_t)OBJECT_BARRIER;
}

/* The return into the frame of o is being served, and its thunk now intercepts the return into the
 * frame of `next`. Reusing the thunk at once is safe, because the trampoline has read the cell, and
 * unwinders see the slot, which the trampoline has restored. */
void incstack__barrier_reuse(stack *s, object *o, object *next, uintptr_t fp)
{
	uint32_t number = number_of(o);
	clear(o);
	intercept(s, next, fp, number);
}

/* The return into the frame of o is being served, and no further barrier is needed. So the thunk is
 * free. */
void incstack__barrier_free(stack *s, object *o)
{
	uint32_t number = number_of(o);
	clear(o);
	put(&s->thunks.spare, number, 0);
}

bool incstack__machine_is_live(const stack *s, const object *o)
{
	(void)s;
	return content(object_slot(o)) == thunk_address(number_of(o));
}

uintptr_t incstack__barrier_fp(const object *o)
{
	return barrier_of(number_of(o))->fp;
}

/* Restores the slot if it still holds our thunk. The thunk is then free if `certain`, which says
 * that a walk from the running frame has met this frame. Otherwise another copy of the frame may be
 * the frame that runs, and the thunk is retired. */
void incstack__machine_lift(stack *s, object *o, bool certain)
{
	uint32_t number = number_of(o);
	bool live = incstack__machine_is_live(s, o);
	o->flags |= INCSTACK_OBJECT_FILLED; /* no return will come that captures more of it */
	if (live)
		store(object_slot(o), thunk_cell(thunk_address(number))->resume);
	if (live && certain)
		incstack__barrier_free(s, o);
	else
		incstack__machine_vanished(s, o);
}

/* The barrier of o, which had the slot, was hit. Its thunk stays readable, because an unwinder or
 * the trampoline may still be using it. Without a slot, nobody uses it. */
void incstack__barrier_free_later(stack *s, object *o, const uintptr_t *slot)
{
	uint32_t number = number_of(o);
	clear(o);
	put(&s->limbo, number, (uintptr_t)slot);
}

/* Takes the thunk from o, whose barrier was hit, if a signal has interrupted the trampoline. The
 * trampoline may not have read the cell yet, and the interrupting handler may begin any number of
 * operations, so the thunk does not wait in limbo. */
void incstack__barrier_served(stack *s, object *o)
{
	uint32_t number = number_of(o);
	clear(o);
	retire(s, number, (uintptr_t)object_slot(o), RETIRED_IN_USE);
}

void incstack__machine_vanished(stack *s, object *o)
{
	uint32_t number = number_of(o);
	clear(o);
	retire(s, number, (uintptr_t)object_slot(o), RETIRED_VANISHED);
}

/* Whether the use of a thunk in limbo is over, because its slot holds another word or is dead
 * memory below the running frame. A handler may have interrupted the unwinder or the trampoline;
 * they are above it then. */
static bool is_over(const stack *s, uint32_t number)
{
	const uintptr_t slot = barrier_of(number)->fp, sp = stack_pointer();
	return !slot || (inside(s, sp) && !slot_holds_thunk(number, sp));
}

/* The frames below sp are about to be popped by a jump, with all that may be using thunks there.
 * Their slots are restored first, because a signal handler may walk over them before the jump is
 * done, when a thunk may already have another slot and another resume address. */
void incstack__limbo_release(stack *s, uintptr_t sp)
{
	const uintptr_t lowest = inside(s, stack_pointer()) ? stack_pointer() : s->low;
	for (uint32_t n = s->limbo; n; n = barrier_of(n)->next) {
		struct barrier *b = barrier_of(n);
		if (b->fp >= sp)
			continue;
		if (b->fp && slot_holds_thunk(n, lowest))
			store((uintptr_t *)b->fp, thunk_cell(thunk_address(n))->resume);
		b->fp = 0;
	}
}

/* Thunks that may still be in use are retired. */
void incstack__limbo_empty(stack *s)
{
	while (s->limbo) {
		uint32_t number = s->limbo;
		s->limbo = barrier_of(number)->next;
		if (is_over(s, number)) {
			put(&s->thunks.spare, number, 0);
		} else {
			barrier_of(number)->retired = RETIRED_IN_USE;
			put_retired(s, number);
		}
	}
}

/* Takes thunk n from its barrier, if it has one. If the slot of the barrier holds the thunk, the
 * slot is restored; otherwise the thunk is retired. A thunk that was retired stays retired, and the
 * reason stays. Without `restore` the stack has ended and its memory is not touched. */
static void discard(stack *s, uint32_t n, bool restore)
{
	const struct barrier *b = barrier_of(n);
	s->stats.stale += b->object != NULL;
	if (!restore) {
		put(&s->limbo, n, 0);
	} else if (!b->object && b->retired) {
		put_retired(s, n);
	} else if (!b->object) {
		put(&s->limbo, n, b->fp);
	} else if (content(object_slot(b->object)) == thunk_address(n)) {
		store(object_slot(b->object), thunk_cell(thunk_address(n))->resume);
		put(&s->limbo, n, 0);
	} else {
		retire(s, n, (uintptr_t)object_slot(b->object), RETIRED_VANISHED);
	}
}

/* Forgets every barrier of s. The chain and the lists may be in any state, so the thunks of s
 * are found by their cells. Without `restore` the stack has ended (I17). */
void incstack__barriers_discard(stack *s, bool restore)
{
	s->thunks.spare = s->limbo = s->thunks.retired = 0;
	for (uint32_t n = s->thunks.low; n && n <= s->thunks.high; n++)
		if (thunk_cell(thunk_address(n))->stack == s)
			discard(s, n, restore);
}

/* Whether a return into a frame of s may still be intercepted. */
bool incstack__stack_is_patched(const stack *s)
{
	return next_barrier(s->newest) || s->busy;
}

/* In the child of fork, s is only an address that cells hold, because its memory may be wiped.
 * Restores the slots of its barriers. Its thunks belong to the parent's stack and are not
 * reused. */
void incstack__stack_forked(struct incstack_stack *s)
{
	uintptr_t pools = 1 + atomic_load_explicit(&incstack__pools.bytes, memory_order_acquire) /
				      INCSTACK__POOL_STRIDE;
	for (uint32_t n = 1; s && n < pools * INCSTACK__THUNK_COUNT; n++) {
		const object *o = barrier_of(n)->object;
		if (thunk_cell(thunk_address(n))->stack == s && o &&
		    content(object_slot(o)) == thunk_address(n))
			store(object_slot(o), thunk_cell(thunk_address(n))->resume);
	}
}

/* Makes the barrier lead to a copy of its object. */
void incstack__barrier_move(object *from, object *to)
{
	if (from->flags & OBJECT_BARRIER)
		barrier_of(number_of(from))->object = to;
}

/* The barrier of o vanished unannounced, and the frames in its gap will never be known. */
__attribute__((noinline)) static void vanish(stack *s, object *o)
{
	s->stats.stale++;
	s->kind->vanished(s, o);
	if (o->flags & OBJECT_GAP)
		incstack__cut(s, o);
	o->flags |= INCSTACK_OBJECT_FILLED;
}

/* Removes o, whose frame is gone, from the known chain. */
object *incstack__known_pop(stack *s, object *o)
{
	object *next = physical_parent(o);
	if (o->flags & OBJECT_BARRIER)
		vanish(s, o);
	return next;
}

uintptr_t incstack_slot_read(const uintptr_t *slot)
{
	if (!slot || (uintptr_t)slot % sizeof(uintptr_t))
		return 0;
	uintptr_t word = content(slot);
	return is_thunk(word) ? thunk_cell(word)->resume : word;
}

object *incstack__barrier_object(const struct incstack__cell *cell)
{
	return barrier_of(thunk_number((uintptr_t)cell - INCSTACK__POOL_BYTES))->object;
}

/* Restores the slot of a barrier without changing the known chain. The barrier will count as
 * vanished unannounced. */
void incstack__barrier_uncover(stack *s, uint32_t number)
{
	const object *o = barrier_of(number)->object;
	s->stats.foreign_unwinders++;
	if (o && content(object_slot(o)) == thunk_address(number))
		store(object_slot(o), thunk_cell(thunk_address(number))->resume);
}

/* The stack was moved: shifts the recorded frame pointer if it points into [low, high). */
void incstack__barrier_shift_fp(const object *o, uintptr_t low, uintptr_t high, uintptr_t delta)
{
	struct barrier *b = barrier_of(number_of(o));
	if (o->flags & OBJECT_BARRIER && !FAULT(FAULT_FP_NOT_MOVED) && b->fp >= low && b->fp < high)
		b->fp += delta;
}
