/* SPDX-License-Identifier: MIT
 *
 * The sample: the frames from the top to the first known one (ICPE'15 section 5.2, "Taking a sample").
 */
#include "capture.h"
#include "compact.h"
#include "heap_compare.h"
#include "heap_distance.h"
#include "heap_walk.h"

/* The frames that a sample usually walks over, at most. */
enum { QUICK = FIRST_TURN };

/* What a sample has captured. */
struct taken {
	const object *top;
	const object *old;
	uint32_t frames;
	int end; /* enum end or an error */
};

/* Serves the return of the top, which was not reported, and walks again. */
static int capture_again(stack *s, struct walk *w)
{
	frame f;
	uintptr_t caller = walk_step(s, w->name, &f);
	f.name = w->name;
	int error = incstack__heap_serve_top(s, &f, caller);
	if (error)
		return error;
	s->scratch = s->arena.next; /* what was captured until here is known */
	w->limit = walk_limit(s);
	w->upto = s->count;
	int end = incstack__heap_capture(s, w);
	return end == END_TOP_MARKED ? INCSTACK_EINVAL : end; /* the mark cannot be cleared */
}

/* Goes on with the frame `name`, whose place is o. */
NOINLINE static struct taken take_slowly(stack *s, object *o, uintptr_t name)
{
	struct taken t;
	struct walk w = {.link = &t.top, .limit = walk_limit(s), .upto = s->count, .is_top = true};
	w.name = o == s->arena.next ? name : s->arena.next->frame.name;
	t.end = incstack__heap_capture_rest(s, &w, o, name, s->mode == INCSTACK_HEAP_BARRIER);
	if (t.end == END_TOP_MARKED)
		t.end = capture_again(s, &w);
	t.old = w.old;
	t.frames = w.frames;
	return t;
}

static inline struct taken finish_quickly(stack *s, object *o, const object *old, int end)
{
	const object *const first = s->arena.next;
	const uint32_t frames = (uint32_t)(o - first);
	s->stats.walked += frames + 1;
	s->arena.next = o + (end == END_BASE);
	return (struct taken){first, old, frames, end};
}

/* Few frames, at which nothing is special, are all that most samples have to capture. */
static ALWAYS_INLINE struct taken take_quickly(stack *s, uintptr_t name)
{
	const struct incstack_heap_options *options = &s->heap->options;
	object *o = s->arena.next;
	const size_t limit = walk_limit(s), few = limit < QUICK ? limit : QUICK;
	const uintptr_t end = (uintptr_t)s->arena.end, there = (uintptr_t)o + few * sizeof(*o);
	const uintptr_t stop = there < end ? there : end;
	while ((uintptr_t)o < stop) {
		const uintptr_t caller = capture_frame(options, s->identity, o, name);
		if (!LIKELY(!(o->frame.flags & ~INCSTACK_HEAP_OWN))) {
			const object *known = youngest(s, s->count, &o->frame, caller);
			if (!LIKELY(known && o != s->arena.next)) /* the top never has one */
				break;
			o[-1].parent = known;
			return finish_quickly(s, o, known, END_KNOWN);
		}
		if (!LIKELY(is_name(caller))) {
			if (caller || s->count)
				break;
			o->parent = NULL;
			o->frame.flags |= INCSTACK_HEAP_BASE;
			return finish_quickly(s, o, NULL, END_BASE);
		}
		name = caller;
		o++;
	}
	return take_slowly(s, o, name);
}

/* Notes what the next samples need to know, which must not be written over. */
static inline struct taken remember(stack *s, struct taken t)
{
	if (t.end == END_PLANTED) {
		s->credit = s->adaptive ? CREDIT : 0;
		s->scratch_end = NULL;
	} else if (s->mode == INCSTACK_HEAP_VALIDATE) {
		if (t.end == END_BASE)
			t.old = incstack__heap_compare(s, t.top, t.frames + 1);
		else
			s->remembered = NULL;
		s->scratch_end = NULL;
	}
	return t;
}

/* Captures the frames from the top on. */
static ALWAYS_INLINE struct taken take(stack *s, uintptr_t top)
{
	struct taken t = take_quickly(s, top);
	if (!LIKELY(t.end >= 0))
		return t;
	s->scratch_end = s->arena.next;
	if (t.end != END_KNOWN)
		t = remember(s, t);
	distance_observe(s, t.frames);
	if (t.frames > s->walk)
		s->walk = t.frames;
	return t;
}

static inline void count(stack *s, const object *old)
{
	if (!old)
		s->all_new++;
	s->stats.samples++;
}

NOINLINE static int lost(stack *s, int error)
{
	s->stats.lost++;
	s->scratch_end = NULL;
	return error;
}

/* The place of a new trace, behind its tree if it is the first one. There is room for both. */
static inline trace *place_trace(stack *s)
{
	if (!s->tree)
		open_tree(s);
	trace *t = (trace *)(void *)s->arena.next;
	s->arena.next += SLOTS(sizeof(trace));
	return t;
}

static inline void append(stack *s, trace *t)
{
	*s->end = t;
	s->end = &t->next;
	s->tree->shown.count++;
}

/* Makes a trace and captures its frames. */
static ALWAYS_INLINE int add_trace(stack *s, uintptr_t top, uint64_t id, uint64_t weight)
{
	begin(s);
	struct chunk *const newest = s->arena.newest;
	object *const start = s->arena.next;
	int error = reserve(s, SLOTS(sizeof(struct tree)) + SLOTS(sizeof(trace)) + 1);
	if (!LIKELY(!error))
		return lost(s, error);
	trace *const t = place_trace(s);
	t->next = NULL;
	t->id = id;
	t->weight = weight;
	const struct taken taken = take(s, top);
	if (!LIKELY(taken.end >= 0)) {
		/* Not if a return was served that was not reported: its frames are known now. */
		if (s->arena.next == (object *)(void *)t + SLOTS(sizeof(trace))) {
			s->tree = s->tree->shown.count ? s->tree : NULL;
			incstack__heap_go_back(s, (struct place){start, newest});
		}
		return lost(s, taken.end);
	}
	t->top = taken.top;
	t->old = taken.old;
	append(s, t);
	count(s, taken.old);
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

static inline bool is_in_newest(const struct arena *a, const object *o)
{
	const uintptr_t from = (uintptr_t)a->newest, behind = (uintptr_t)a->next;
	return (uintptr_t)o - from < behind - from;
}

/* Captures the frames and those that are still missing below. */
static ALWAYS_INLINE int capture_at_once(stack *s, uintptr_t top, const object **out)
{
	int end;
	begin(s);
	const struct taken t = take(s, top);
	if (!LIKELY(t.end >= 0))
		return lost(s, t.end);
	*out = t.top;
	/* The next call may write over it, also if there are traces that were not retrieved. */
	if (LIKELY(s->scratch_end && is_in_newest(&s->arena, t.top) && !s->gaps))
		s->arena.next = s->scratch_end = writable(t.top);
	/* A walk that was cut has seen no mark: the frames of all marks may be gone. */
	if (!LIKELY(!s->gaps) && t.end != END_CUT && (end = incstack__heap_complete(s, 0)) < 0)
		return lost(s, end);
	count(s, t.old);
	return 0;
}

int incstack_heap_stack_trace(struct incstack_heap_stack *s, uintptr_t top,
			      const struct incstack_heap_object **out)
{
	int error = enter(s);
	if (!LIKELY(!error))
		return error;
	error = LIKELY(is_name(top) && out) ? capture_at_once(s, top, out) : INCSTACK_EINVAL;
	leave(s);
	return error;
}
