/* SPDX-License-Identifier: MIT
 *
 * The walk that captures frames, from a frame to its callers. It stops at the first frame with a mark,
 * because the callers of that frame are known, or where a new mark is due.
 *
 * A mark alone is no proof (D16). The frame must also look as it did when the mark was set.
 */
#include "capture.h"

#include "heap_distance.h"
#include "heap_walk.h"

/* The frame *f has a mark. Returns true if a barrier, of the oldest *upto, is really on it; this one is
 * then the youngest of them. Otherwise the mark is cleared. */
static bool meet(stack *s, uint32_t *upto, const frame *f, uintptr_t caller)
{
	if (LIKELY(youngest(s, *upto, f, caller)))
		return true;
	uint32_t found = incstack__heap_find(s, *upto, f->name);
	if (found) {
		bool same = is_same(&s->barriers[found - 1], f, caller);
		incstack__heap_remove_stale(s, same ? found : found - 1, *upto);
		*upto = same ? found : found - 1;
		if (same)
			return true;
	} else {
		s->stats.stale++;
	}
	set_mark(s, f->name, 0);
	return false;
}

/* To notice a walk in a circle, a frame that it has met is compared with all that follow, and is changed
 * at powers of two (Brent 1980, "An improved Monte Carlo factorization algorithm"). */
struct circle {
	uintptr_t seen;
	uint32_t turn; /* the number of the frame at which `seen` changes */
};

/* Returns true if the frame with the number n is one too many. */
static bool is_too_long(const stack *s, struct circle *c, uint32_t n, uintptr_t caller)
{
	const uint32_t last = s->heap->options.frame_limit - 1;
	if (n < c->turn)
		return false;
	c->turn = c->turn < last / 2 ? 2 * c->turn : last;
	c->seen = caller;
	return n >= last;
}

/* A walk in progress. */
struct progress {
	const object **link; /* where the pointer to the first object of this chunk goes */
	object *first;       /* the first object of this chunk, */
	uint32_t before;     /* and how many were captured before it */
	const object *pause; /* the object after which something else must be done */
	object *next;        /* where the walk goes on after a pause */
	struct circle circle;
};

static inline uint32_t number_of(const struct progress *p, const object *o)
{
	return p->before + (uint32_t)(o - p->first);
}

/* Finds the object after which a new mark, a new chunk or a check is due. */
static inline void set_pause(const stack *s, struct progress *p, uint32_t limit)
{
	const uint32_t due = limit < p->circle.turn ? limit : p->circle.turn;
	const size_t room = (size_t)(s->arena.end - p->first) - 1, left = due - p->before;
	p->pause = p->first + (due < p->before ? 0 : left < room ? left : room);
}

/* p->next gets the place o, or if the chunk ends there, the first one of a new chunk. */
static int find_place(stack *s, struct progress *p, object *o)
{
	p->next = o;
	if (o != s->arena.end)
		return 0;
	const uint32_t n = number_of(p, o);
	s->arena.next = o;
	int error = incstack__heap_grow(s, 1);
	if (error)
		return error;
	if (o != p->first)
		p->link = &o[-1].parent;
	p->first = p->next = s->arena.next;
	*p->link = p->first;
	p->before = n;
	return 0;
}

/* The walk pauses after o. Returns END_KNOWN if it goes on. */
NOINLINE static int pause(stack *s, struct walk *w, struct progress *p, object *o, uintptr_t caller)
{
	const uint32_t n = number_of(p, o);
	const object *known = w->upto ? s->barriers[w->upto - 1].at : NULL;
	if (n >= w->limit && incstack__heap_plant(s, o, caller)) {
		w->old = known;
		return END_PLANTED;
	}
	if (is_too_long(s, &p->circle, n, caller))
		return END_CUT;
	int error = find_place(s, p, o + 1);
	/* A frame that cannot have a mark leaves the attempt to its caller. */
	set_pause(s, p, n >= w->limit ? n + 1 : w->limit);
	return error ? error : END_KNOWN;
}

/* The walk ends with o, whose callers are not captured. */
static int stop(stack *s, struct walk *w, object *o, int end)
{
	o->parent = NULL;
	if (end == END_CUT) {
		incstack__heap_cut(s, o);
	} else if (end == END_BASE) {
		o->frame.flags |= INCSTACK_HEAP_BASE;
		w->upto = incstack__heap_remove_stale(s, 0, w->upto);
	}
	return end;
}

/* The walk cannot simply go on to the caller of o. Returns END_KNOWN if it goes on all the same. */
NOINLINE static int hesitate(stack *s, struct walk *w, struct progress *p, object *o,
			     uintptr_t caller)
{
	int end;
	if (!caller)
		return stop(s, w, o, END_BASE);
	if (caller == INCSTACK_HEAP_UNKNOWN)
		return stop(s, w, o, END_CUT);
	end = caller == p->circle.seen ? END_CUT : pause(s, w, p, o, caller);
	s->stats.endless += end == END_CUT;
	return end > END_KNOWN ? stop(s, w, o, end) : end;
}

/* Goes on with the frame `name`, whose place is o. The frames before it, from s->arena.next on, are captured. */
int incstack__heap_capture_rest(stack *s, struct walk *w, object *o, uintptr_t name, bool marks)
{
	const struct place start = place_of(s);
	*w->link = start.next;
	w->old = NULL;
	struct progress p = {w->link, start.next, 0, o, o, {w->name, FIRST_TURN}};
	int end = find_place(s, &p, o);
	if (end) {
		incstack__heap_go_back(s, start);
		return end;
	}
	set_pause(s, &p, w->limit);
	for (o = p.next;;) {
		const uintptr_t caller = capture_frame(&s->heap->options, s->identity, o, name);
		if (!LIKELY(!o->frame.flags)) {
			if (marks && o->frame.flags & INCSTACK_HEAP_MARKED) {
				/* It had none a moment ago, or this function was not called. */
				if (w->is_top && number_of(&p, o) == 0)
					return finish(s, w, 0, o, END_TOP_MARKED);
				if (meet(s, &w->upto, &o->frame, caller))
					return finish_known(s, w, number_of(&p, o), o,
							    o == p.first ? p.link : &o[-1].parent);
			}
			o->frame.flags &= INCSTACK_HEAP_OWN;
		}
		if (LIKELY(caller != p.circle.seen && is_name(caller) && o < p.pause)) {
			o++;
		} else {
			end = hesitate(s, w, &p, o, caller);
			if (end < 0)
				incstack__heap_go_back(s, start);
			if (end < 0)
				return end;
			if (end != END_KNOWN)
				return finish(s, w, number_of(&p, o), o, end);
			o = p.next;
		}
		name = caller;
	}
}

/* Captures from w->name to a known frame, a new mark or the base. After an error nothing was captured,
 * and *w->link has no meaning. */
int incstack__heap_capture(stack *s, struct walk *w)
{
	return incstack__heap_capture_rest(s, w, s->arena.next, w->name, true);
}

/* Captures the callers of the barrier's frame, which has a gap, from its direct caller on. Returns an enum
 * end or an error. */
static int fill(stack *s, const struct barrier *b, uint32_t limit, uint32_t *upto)
{
	struct walk w = {
		.link = &writable(b->at)->parent, .name = b->caller, .limit = limit, .upto = *upto};
	int end = incstack__heap_capture(s, &w);
	*upto = w.upto;
	if (end < 0)
		writable(b->at)->parent = NULL;
	return end;
}

/* Fills all gaps of the barriers with an index from `from` on, the youngest first: a walk from one shows
 * that the next one is still there. If a walk is cut, the others are taken for popped. After an error the
 * rest is still open. */
int incstack__heap_complete(stack *s, uint32_t from)
{
	uint32_t i = s->count;
	while (i > from && s->gaps) {
		uint32_t upto = i - 1;
		const struct barrier b = s->barriers[i - 1];
		if (b.caller) {
			int end = fill(s, &b, UINT32_MAX, &upto);
			if (end == END_CUT)
				upto = incstack__heap_remove_stale(s, 0, upto);
			s->barriers[upto].caller = end < 0 ? b.caller : 0;
			if (end < 0)
				return end;
			s->gaps--;
		}
		i = upto;
	}
	return 0;
}

/* The frame of the barrier b, which was the youngest one, is about to run, or a frame so many frames beyond
 * it, in its gap. */
int incstack__heap_passed(stack *s, struct barrier b, uint32_t beyond)
{
	uint32_t upto = s->count;
	int error = 0;
	s->stats.returns++;
	s->hits++;
	s->review = 0;
	if (!b.caller) {
		incstack__heap_move_down(s, b.at);
		return 0;
	}
	error = fill(s, &b, beyond + s->distance - 1, &upto);
	if (error < 0)
		incstack__heap_cut(s, b.at);
	return error < 0 ? error : 0;
}

/* The running frame *f has a mark: its return was not reported. This is done now, unless the mark was
 * that of another frame with the same name. */
int incstack__heap_serve_top(stack *s, const frame *f, uintptr_t caller)
{
	uint32_t found = incstack__heap_find(s, s->count, f->name);
	set_mark(s, f->name, 0);
	if (!found) {
		s->stats.stale++;
		return 0;
	}
	frame then = *f; /* it may have run since it was marked */
	then.position = s->barriers[found - 1].at->frame.position;
	bool same = is_same(&s->barriers[found - 1], &then, caller);
	incstack__heap_remove_stale(s, same ? found : found - 1, s->count);
	if (!same)
		return 0;
	s->stats.stale++;
	return incstack__heap_passed(s, incstack__heap_pop(s), 0);
}

/* Walks from the top to the first known frame, at most to the frame `until`, and to the base if that is 0. Removes the
 * barriers whose frames were popped without a report. Returns an enum looked or an error. */
int incstack__heap_look(stack *s, uintptr_t top, uintptr_t until)
{
	struct circle circle = {top, FIRST_TURN};
	uintptr_t name = top;
	frame f;
	for (uint32_t n = 0; name && s->count; n++) {
		uintptr_t caller = walk_step(s, name, &f);
		uint32_t upto = s->count;
		f.name = name;
		s->stats.walked++;
		if (f.flags & INCSTACK_HEAP_MARKED && n == 0) {
			int error = incstack__heap_serve_top(s, &f, caller);
			if (error)
				return error;
		} else if (f.flags & INCSTACK_HEAP_MARKED && meet(s, &upto, &f, caller)) {
			return LOOKED_KNOWN;
		}
		if (name == until)
			return LOOKED_UNTIL;
		if (caller == INCSTACK_HEAP_UNKNOWN || caller == circle.seen ||
		    is_too_long(s, &circle, n, caller))
			break; /* whether the others are there cannot be known */
		name = caller;
	}
	incstack__heap_remove_stale(s, 0, s->count);
	return LOOKED_OVER;
}
