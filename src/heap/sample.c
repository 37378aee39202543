/* SPDX-License-Identifier: MIT
 *
 * The sample: the frames from the top to the first known one (ICPE'15 section 5.2, "Taking a sample").
 */
#include "capture.h"
#include "compact.h"
#include "compare.h"
#include "distance.h"
#include "walk.h"

static ALWAYS_INLINE int capture_marked(stack *s, struct walk *w)
{
	w->limit = walk_limit(s);
	w->upto = s->count;
	return capture(s, w, true);
}

/* Serves the return of the top, which was not reported, and walks again. */
NOINLINE static int capture_again(stack *s, struct walk *w)
{
	frame f;
	uintptr_t caller = walk_step(s, w->name, &f);
	f.name = w->name;
	int error = incstack__heap_serve_top(s, &f, caller);
	if (error)
		return error;
	w->limit = walk_limit(s);
	w->upto = s->count;
	int end = incstack__heap_capture(s, w);
	return end == END_TOP_MARKED ? INCSTACK_EINVAL : end; /* the mark cannot be cleared */
}

NOINLINE static int capture_and_compare(stack *s, struct walk *w)
{
	int end = incstack__heap_capture_all(s, w);
	if (end == END_BASE)
		w->old = incstack__heap_compare(s, *w->link, w->frames + 1);
	else if (end >= 0)
		s->remembered = NULL;
	return end;
}

/* Calls what is rarely needed with a copy of *w, so that the compiler may keep the original in registers. */
static ALWAYS_INLINE int with_copy(int function(stack *s, struct walk *w), stack *s, struct walk *w)
{
	struct walk copy = *w;
	int end = function(s, &copy);
	*w = copy;
	return end;
}

/* Captures the frames from the top on. *w->link gets the top. */
static ALWAYS_INLINE int take(stack *s, struct walk *w)
{
	int end;
	if (LIKELY(s->mode == INCSTACK_HEAP_BARRIER)) {
		end = capture_marked(s, w);
		if (!LIKELY(end != END_TOP_MARKED))
			end = with_copy(capture_again, s, w);
		if (LIKELY(end >= 0))
			distance_observe(s, w->frames, end == END_PLANTED);
	} else if (s->mode == INCSTACK_HEAP_FULL) {
		w->limit = UINT32_MAX;
		end = capture(s, w, false);
	} else {
		end = with_copy(capture_and_compare, s, w);
	}
	if (LIKELY(end >= 0) && w->frames > s->walk)
		s->walk = w->frames;
	return end;
}

static inline void count(stack *s, const struct walk *w)
{
	s->all_new += !w->old;
	s->stats.samples++;
}

NOINLINE static int lost(stack *s, int error)
{
	s->stats.lost++;
	s->scratch = NULL;
	return error;
}

static void append(stack *s, trace *t)
{
	if (s->last)
		s->last->next = t;
	else
		s->first = t;
	s->last = t;
	s->open++;
}

/* Makes a trace and captures its frames. */
static int add_trace(stack *s, uintptr_t top, uint64_t id, uint64_t weight)
{
	const struct place before = place_of(s);
	const object *first;
	struct walk w = {.link = &first, .name = top, .is_top = true};
	int error = reserve(s, SLOTS(sizeof(trace)) + 1);
	if (error)
		return lost(s, error);
	trace *t = (trace *)(void *)s->arena.next;
	const object *behind = s->arena.next += SLOTS(sizeof(trace));
	error = take(s, &w);
	if (error < 0) {
		/* Not if a return was served that was not reported: its frames are known now. */
		if (s->arena.next == behind)
			incstack__heap_go_back(s, before);
		return lost(s, error);
	}
	count(s, &w);
	*t = (trace){.top = first, .old = w.old, .id = id, .weight = weight};
	append(s, t);
	return 0;
}

int incstack_heap_stack_sample(struct incstack_heap_stack *s, uintptr_t top, uint64_t id,
			       uint64_t weight)
{
	int error = enter(s);
	if (error)
		return error;
	error = is_name(top) ? add_trace(s, top, id, weight) : INCSTACK_EINVAL;
	leave(s);
	return error;
}

/* Prepares the memory for a trace that is used at once. That of the last one is used again, if nothing
 * was allocated behind it. */
static inline void begin_at_once(stack *s)
{
	if (s->scratch && s->scratch_end == s->arena.next)
		s->arena.next = s->scratch;
	else if (!s->open)
		compact_if_due(s);
}

/* The memory of the objects from `first` on may be used again by the next such trace. Not what a mark or
 * mode VALIDATE remembers, and only what lies side by side. */
static inline void set_scratch(stack *s, const object *first, int end)
{
	const uintptr_t from = (uintptr_t)s->arena.newest, behind = (uintptr_t)s->arena.next;
	const bool reuse =
		end != END_PLANTED && !s->remembered && (uintptr_t)first - from < behind - from;
	s->scratch = reuse ? writable(first) : NULL;
	s->scratch_end = s->arena.next;
}

/* Captures the frames and those that are still missing below. */
static int capture_at_once(stack *s, uintptr_t top, const object **out)
{
	struct walk w = {.link = out, .name = top, .is_top = true};
	int end = take(s, &w);
	if (!LIKELY(end >= 0))
		return lost(s, end);
	set_scratch(s, *out, end);
	/* A walk that was cut has seen no mark: the frames of all marks may be gone. */
	if (!LIKELY(!s->gaps) && end != END_CUT && (end = incstack__heap_complete(s, 0)) < 0)
		return lost(s, end);
	count(s, &w);
	return 0;
}

int incstack_heap_stack_trace(struct incstack_heap_stack *s, uintptr_t top,
			      const struct incstack_heap_object **out)
{
	int error = enter(s);
	if (!LIKELY(!error))
		return error;
	if (LIKELY(is_name(top) && out)) {
		begin_at_once(s);
		error = capture_at_once(s, top, out);
	} else {
		error = INCSTACK_EINVAL;
	}
	leave(s);
	return error;
}
