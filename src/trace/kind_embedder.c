/* SPDX-License-Identifier: MIT
 *
 * Stacks that only the embedder can walk and that have the embedder's own return barrier, for
 * example the heap frames of an interpreter, or a virtual machine with a stack watermark. This file
 * implements the table of functions in kind.h by the embedder's functions `caller`, `youngest`,
 * `arm` and `disarm` (struct incstack_stack_walker in embedder.h).
 *
 * The embedder names each frame by a number, which is kept as the `address` of the frame object.
 * The numbers have no order. So a walk can meet a known frame only where the embedder says that the
 * frame is armed. No return of these frames goes through a thunk. But a barrier still takes a thunk
 * from the pool, because the record of a barrier belongs to the number of a thunk.
 */
#include "barrier.h"
#include "decode.h"
#include "fault.h"
#include "frames.h"
#include "sample.h"
#include "walk.h"

/* ---- the known chain ---------------------------------------------------------------- */

/* Returns the known object with a barrier on the frame, or null. Younger known objects were
 * popped unannounced and are removed from *known. Null leaves *known unchanged. */
static object *meet(stack *s, object **known, uintptr_t frame)
{
	object *k = *known;
	while (k && !(k->flags & OBJECT_BARRIER && k->address == frame))
		k = physical_parent(k);
	while (k && *known != k)
		*known = incstack__known_pop(s, *known);
	return k;
}

/* Removes from the known chain the frames that were popped unannounced, if the embedder has the
 * function `youngest`. A walk from the youngest frame ends at the first known frame with a barrier.
 * If it reaches the base, no known frame is left, and the chain becomes empty. Returns false if the
 * embedder does not know the caller of a frame. */
static bool remove_popped(stack *s, const uintptr_t *running)
{
	(void)running;
	const runtime *rt = s->runtime;
	struct incstack_frame f = {0};
	object *known = s->newest;
	if (!known || !s->walker->youngest)
		return true;
	int more = s->walker->youngest(rt->context, s->identity, &f);
	while (more > 0 && !(f.flags & INCSTACK_FRAME_ARMED && meet(s, &known, f.sp))) {
		f.flags = 0;
		more = s->walker->caller(rt->context, s->identity, &f);
	}
	while (more == 0 && known) /* the whole stack was seen, and no barrier */
		known = incstack__known_pop(s, known);
	set_newest(s, known);
	return more >= 0;
}

/* Removes nothing, because the embedder's barriers are right whatever was interrupted. */
static bool remove_popped_at(stack *s, const struct incstack_top *top)
{
	(void)s;
	(void)top;
	return true;
}

/* Renames a frame. */
static int frame_moved(stack *s, uintptr_t old, uintptr_t new)
{
	if (!old || !new)
		return INCSTACK_EINVAL;
	for (object *o = s->newest; o; o = (object *)o->parent)
		if (o->address == old)
			o->address = new;
	return 0;
}

/* ---- barriers -------------------------------------------------------------------------- */

/* Returns false if there is no thunk or the embedder refuses. */
static bool plant(stack *s, object *o, uintptr_t fp)
{
	const runtime *rt = s->runtime;
	uint32_t number = incstack__barrier_take(s);
	if (!number)
		return false;
	if (s->walker->arm(rt->context, s->identity, o->address) < 0) {
		incstack__barrier_give_back(s, number);
		return false;
	}
	barrier_record(s, o, fp, number);
	return true;
}

/* A barrier counts as live until the embedder announces its return. */
static bool is_live(const stack *s, const object *o)
{
	(void)s;
	return o->flags & OBJECT_BARRIER;
}

static void lift(stack *s, object *o, bool certain)
{
	const runtime *rt = s->runtime;
	(void)certain;
	o->flags |= INCSTACK_OBJECT_FILLED; /* no return will come that captures more of it */
	s->walker->disarm(rt->context, s->identity, o->address);
	incstack__barrier_free(s, o);
}

/* Lifts nothing. Only machine stacks lift barriers when thunks are short. */
static void thin(stack *s, const uintptr_t *running)
{
	(void)s;
	(void)running;
}

static void abandon(stack *s)
{
	for (object *o = s->newest; o; o = (object *)o->parent)
		if (o->flags & OBJECT_BARRIER)
			incstack__barrier_free_later(s, o, NULL);
}

/* ---- walks ------------------------------------------------------------------------------- */

static object *make(const struct walker *w, const struct incstack_frame *f, uint32_t flags)
{
	if (f->flags & INCSTACK_FRAME_EXACT)
		flags |= INCSTACK_OBJECT_EXACT;
	if (f->flags & INCSTACK_FRAME_DECODE_NOW)
		flags |= OBJECT_DECODE_NOW;
	return arena_object(w->stack->runtime, &w->stack->arena, w->grow,
			    (object){NULL, f->pc, f->sp, -1, flags | INCSTACK_OBJECT_RAW});
}

/* Makes a skeleton, that is the object of a frame whose callers are not walked yet, and puts a
 * barrier on the frame. Returns null if there is no room or no barrier can be planted. */
static object *plant_at(const struct walker *w, const struct incstack_frame *f, object *known)
{
	object *o = make(w, f, OBJECT_GAP);
	if (!o)
		return NULL;
	if (!plant(w->stack, o, f->fp)) {
		w->stack->arena.object--;
		return NULL;
	}
	o->parent = known;
	return o;
}

/* Decodes o now if its position cannot be read later. Returns null if there is no memory. */
static object *decoded(const struct walker *w, object *o, const struct incstack_frame *f)
{
	if (!(o->flags & OBJECT_DECODE_NOW) || !(o->flags & INCSTACK_OBJECT_RAW) ||
	    !w->stack->runtime->embedder.code.decode)
		return o;
	return incstack__decode(w->stack, o, f, w->steps.ask, w->grow);
}

/* Ends a walk at k, a known frame or a new barrier. `met` is the youngest object that existed
 * before the walk. This function and the next two return the head of the known chain. */
static object *arrive(stack *s, object *child, object *k, object *met)
{
	child->parent = k;
	s->found.known = met;
	return k;
}

/* Ends a walk at a frame whose caller cannot be found or has no room. */
static object *cut(stack *s, object *child, object *known, bool no_memory)
{
	incstack__cut_walk(s, child, no_memory);
	return known;
}

/* Ends a walk at the base. The walk has met no known frame, so no known frame is left. */
static object *end(stack *s, object *child, object *known)
{
	child->flags |= INCSTACK_OBJECT_BASE;
	while (known)
		known = incstack__known_pop(s, known);
	return NULL;
}

static object *walk(const struct walker *w, struct path *p)
{
	stack *s = w->stack;
	const runtime *rt = s->runtime;
	object *child = p->child, *known = p->known;
	struct incstack_frame f = {p->at.pc, p->at.sp, p->at.fp,
				   p->at.exact ? INCSTACK_FRAME_EXACT : 0, 0};
	s->found.known = NULL;
	for (uint32_t n = 0;; n++) {
		object *last = decoded(w, child, &f);
		if (!last)
			return cut(s, child, known, true);
		child = last;
		f.flags = 0;
		int more = s->walker->caller(rt->context, s->identity, &f);
		s->walked++;
		if (more <= 0)
			return more ? cut(s, child, known, false) : end(s, child, known);
		object *k = f.flags & INCSTACK_FRAME_ARMED ? meet(s, &known, f.sp) : NULL;
		if (k)
			return arrive(s, child, k, k);
		bool due = n >= w->distance && s->mode == INCSTACK_MODE_EMBEDDER;
		if (due && (k = plant_at(w, &f, known)) != NULL)
			return arrive(s, child, k, known);
		k = make(w, &f, INCSTACK_OBJECT_FILLED);
		if (!k)
			return cut(s, child, known, true);
		child->parent = k;
		child = k;
	}
}

/* The barrier of o was hit. The callers of o are known and cannot have changed. So the next barrier
 * is planted on one of them without a walk, and the known chain begins there. */
static void move_down(stack *s, const object *o)
{
	uint32_t n = s->distance.value;
	object *p = physical_parent(o);
	for (; p && !(p->flags & OBJECT_BARRIER); p = physical_parent(p)) {
		if (!n && plant(s, p, 0))
			break;
		n -= n > 0;
	}
	set_newest(s, p);
}

/* Walks the gap of o, or moves the barrier down. The number of frames is not known, so nobody can
 * have reserved room for all of them. So the walk may allocate. */
static void passed(stack *s, object *o, uintptr_t fp, enum ask ask, uintptr_t plant_from)
{
	const struct walker w = {stepper_of(s, ask), s, true, s->distance.value, plant_from};
	incstack__barrier_free_later(s, o, NULL);
	o->flags |= INCSTACK_OBJECT_FILLED;
	if (!(o->flags & OBJECT_GAP) || (FAULT(FAULT_GAP_FORGOTTEN) && o->parent))
		move_down(s, o);
	else
		set_newest(s, incstack__gap_fill(&w, o, fp));
}

static int announced(stack *s, uintptr_t frame)
{
	object *known = s->newest, *o = meet(s, &known, frame);
	if (!o)
		return INCSTACK_ERANGE;
	set_newest(s, known);
	s->stats.returns++;
	s->distance.returns++;
	incstack__limbo_empty(s);
	s->found.cut = NULL;
	passed(s, o, incstack__barrier_fp(o), ASK_DIRECTLY, 0);
	return s->found.cut && s->found.no_memory ? INCSTACK_ENOMEM : 0;
}

/* ---- samples ------------------------------------------------------------------------------- */

static bool takes_top(const struct incstack_top *top)
{
	return top->sp && !(top->flags & INCSTACK_TOP_INTERRUPTED);
}

/* Makes the objects of the top and of its callers. How many frames the stack has is not known
 * before the walk, so nobody can have reserved room for them. If there is not enough room, all
 * objects of the walk are removed, and null is returned. */
static object *walk_whole(stack *s, const struct incstack_top *top, const struct arena *before)
{
	const struct cursor at = {.pc = top->pc,
				  .sp = top->sp,
				  .fp = top->fp,
				  .exact = top->flags & INCSTACK_TOP_EXACT};
	s->found.cut = NULL;
	object *o = incstack__sample_walk(s, &at, top->flags);
	if (!s->found.cut || !s->found.no_memory)
		return o;
	incstack__arena_go_back(&s->arena, before);
	s->stats.truncated--;
	return NULL;
}

static int sample(stack *s, uint64_t id, uint64_t weight, const struct incstack_top *top)
{
	if (!incstack__sample_fits(s))
		return INCSTACK_EROOM;
	const struct arena before = s->arena;
	trace *t = incstack__sample_begin(s, id, weight);
	if (!walk_whole(s, top, &before)) {
		s->stats.lost_limit++;
		return INCSTACK_EROOM;
	}
	incstack__sample_finish(s, t);
	return 0;
}

/* Refuses the sample, because the embedder may not be called in a signal handler. */
static int sample_described(stack *s, uint64_t id, uint64_t weight, const struct incstack_top *top)
{
	(void)id;
	(void)weight;
	(void)top;
	return lose_sample(s);
}

/* Walks from the poll. If there is no room, makes room and walks again. */
static object *frames(stack *s, const struct incstack_top *poll)
{
	for (;;) {
		const struct arena before = s->arena;
		object *top = walk_whole(s, poll, &before);
		if (top || incstack__arena_double(s->runtime, &s->arena))
			return top;
	}
}

/* ---- frames have no addresses, and no order ------------------------------------------------- */

static int holds(const stack *s, uintptr_t address, size_t bytes)
{
	(void)s;
	(void)address;
	(void)bytes;
	return INCSTACK_EINVAL;
}

static int moved(stack *s, uintptr_t low, uintptr_t high)
{
	(void)s;
	(void)low;
	(void)high;
	return INCSTACK_EINVAL;
}

/* The operation runs on a machine stack. Its stack pointer says nothing about this stack. */
static bool left_behind(const stack *s, uintptr_t operation, uintptr_t sp)
{
	(void)s;
	(void)operation;
	(void)sp;
	return false;
}

static bool may_have_called(const object *frame, const struct incstack_top *top)
{
	return frame->address == top->sp;
}

static bool is_promised(const object *frame, const object *caller, const struct incstack_top *top)
{
	(void)caller;
	return may_have_called(frame, top);
}

static uintptr_t open_bytes(const stack *s)
{
	(void)s;
	return 0;
}

static int more_room(stack *s)
{
	return incstack__arena_double(s->runtime, &s->arena);
}

static int broken(const stack *s, size_t most)
{
	(void)s;
	(void)most;
	return 0;
}

/* ---- the frame iterator --------------------------------------------------------------------- */

static int frames_begin(struct incstack_frames *frames, const struct incstack_top *top)
{
	const stack *s = frames->state.stack;
	struct incstack_frame f = {0};
	int more = 1;
	if (top ? !takes_top(top) : !s->walker->youngest)
		return incstack__frames_refuse(frames);
	if (top)
		f = (struct incstack_frame){
			top->pc, top->sp, top->fp,
			top->flags & INCSTACK_TOP_EXACT ? INCSTACK_FRAME_EXACT : 0, 0};
	else
		more = s->walker->youngest(s->runtime->context, s->identity, &f);
	f.flags &= INCSTACK_FRAME_EXACT;
	return incstack__frames_start(frames, &f, f.sp, more < 1 ? more : 1);
}

static int frames_next(struct incstack_frames *frames)
{
	const stack *s = frames->state.stack;
	struct incstack_frame caller = frames->frame;
	if (!frames->state.begun)
		return 1;
	caller.flags = 0;
	int more = s->walker->caller(s->runtime->context, s->identity, &caller);
	if (more <= 0)
		return more;
	frames->frame = caller;
	frames->frame.flags &= INCSTACK_FRAME_EXACT;
	return 1;
}

const struct incstack__stack_kind incstack__kind_embedder = {
	.modes = 1u << INCSTACK_MODE_EMBEDDER | 1u << INCSTACK_MODE_FULL,
	.mode = INCSTACK_MODE_EMBEDDER,
	.slow_reasons = SLOW_WALK,
	.takes_top = takes_top,
	.sample = sample,
	.sample_described = sample_described,
	.frames = frames,
	.walk = walk,
	.remove_popped = remove_popped,
	.remove_popped_at = remove_popped_at,
	.passed = passed,
	.announced = announced,
	.is_live = is_live,
	.lift = lift,
	.vanished = incstack__barrier_free,
	.thin = thin,
	.abandon = abandon,
	.holds = holds,
	.frame_moved = frame_moved,
	.moved = moved,
	.left_behind = left_behind,
	.is_promised = is_promised,
	.may_have_called = may_have_called,
	.open_bytes = open_bytes,
	.more_room = more_room,
	.frames_begin = frames_begin,
	.frames_next = frames_next,
	.broken = broken,
};
