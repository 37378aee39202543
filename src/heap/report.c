/* SPDX-License-Identifier: MIT
 *
 * What the interpreter reports: returns to marked frames, errors that pop many frames.
 */
#include "capture.h"

int incstack_heap_stack_returned(struct incstack_heap_stack *s, uintptr_t name)
{
	int error = enter(s);
	if (error)
		return error;
	uint32_t found = incstack__heap_find(s, s->count, name);
	if (found) {
		incstack__heap_remove_stale(s, found, s->count);
		error = incstack__heap_passed(s, incstack__heap_pop(s), 0);
	} else {
		error = INCSTACK_ERANGE;
	}
	leave(s);
	return error;
}

/* The search for the frame that handles an error, from two ends: from the youngest mark on, over known
 * objects and in gaps over frames; and from the handler to the first mark. */
struct search {
	uint32_t left;       /* the barrier whose callers are searched; found: how many are left */
	const object *known; /* the known object; null: in a gap, or at the end */
	uintptr_t gap;       /* the frame in the gap, or 0 */
	uint32_t behind;     /* frames of the gap that are younger */
	uintptr_t from_handler; /* the frame at the other end, or 0 */
	uint32_t steps;
};

/* Goes from *name to its caller, or 0. Returns 1 + the index of the barrier on the frame; 0: none. */
static uint32_t step(stack *s, struct search *at, uintptr_t *name)
{
	frame f;
	uintptr_t before = *name, caller = walk_step(s, before, &f);
	s->stats.walked++;
	const bool more = is_name(caller) && ++at->steps < s->heap->options.frame_limit;
	*name = more ? caller : 0;
	return f.flags & INCSTACK_HEAP_MARKED ? incstack__heap_find(s, s->count, before) : 0;
}

static void go_to_known(const stack *s, struct search *at, uint32_t barriers)
{
	at->known = barriers ? s->barriers[barriers - 1].at : NULL;
	at->left = barriers ? barriers - 1 : 0;
	at->gap = 0;
}

static void go_to_caller(stack *s, struct search *at)
{
	if (at->gap) {
		uint32_t found = step(s, at, &at->gap);
		at->behind++;
		if (found && found <= at->left)
			go_to_known(s, at, found);
	} else if (at->known) {
		const struct barrier *b = &s->barriers[at->left];
		const object *next = at->known->parent;
		if (at->known == b->at && b->caller) {
			at->known = NULL;
			at->gap = b->caller;
			at->behind = 0;
		} else if (!next || (at->left && next == b[-1].at)) {
			go_to_known(s, at, at->left);
		} else {
			at->known = next;
		}
	}
}

/* Finds how many barriers are left if all frames younger than `name` are popped, and where it is. */
static struct search find_handler(stack *s, uintptr_t name)
{
	struct search at = {.from_handler = name};
	go_to_known(s, &at, s->count);
	while (at.known || at.gap || at.from_handler) {
		if (at.known ? at.known->frame.name == name : at.gap == name)
			return at;
		const uintptr_t here = at.from_handler;
		uint32_t found = here ? step(s, &at, &at.from_handler) : 0;
		if (found) {
			go_to_known(s, &at, found);
			return here == name ? at : (struct search){.left = found};
		}
		go_to_caller(s, &at);
	}
	return (struct search){0};
}

/* Fills the gaps of the barriers from `left` on and removes them, with their marks. Returns an error if some
 * had to be cut. The walks may show that older barriers are stale, so the indices may change. */
static int pop_barriers(stack *s, uint32_t left)
{
	const object *last = left ? s->barriers[left - 1].at : NULL;
	int error = incstack__heap_complete(s, left);
	while (s->count && s->barriers[s->count - 1].at != last) {
		const struct barrier b = incstack__heap_pop(s);
		if (b.caller)
			incstack__heap_cut(s, b.at);
		set_mark(s, b.at->frame.name, 0);
		s->stats.returns++;
	}
	return error;
}

/* The frame that handles the error is found: a mark is set on one of its callers. */
static int go_on_from(stack *s, const struct search *handler)
{
	const struct barrier b = incstack__heap_pop(s);
	set_mark(s, b.at->frame.name, 0);
	if (handler->known != b.at && handler->known)
		incstack__heap_move_down(s, handler->known);
	else
		return incstack__heap_passed(s, b, handler->known ? 0 : handler->behind + 1);
	s->stats.returns++;
	return 0;
}

/* The youngest barrier was met on the way from the top, so what is known is right. */
static int unwind(stack *s, uintptr_t name)
{
	const struct search handler = find_handler(s, name);
	const bool found = handler.known || handler.gap;
	const object *at = found ? s->barriers[handler.left].at : NULL;
	int error = pop_barriers(s, handler.left + found);
	/* Not if it was found to be stale. */
	if (found && s->count == handler.left + 1 && s->barriers[handler.left].at == at) {
		int next = go_on_from(s, &handler);
		error = error ? error : next;
	}
	return error;
}

/* If there is no mark from the top to `name`, no known frame is popped. A mark whose return was not reported is
 * noticed by the next sample or retrieve. */
static int look_and_unwind(stack *s, uintptr_t top, uintptr_t name)
{
	int looked = incstack__heap_look(s, top, name);
	return looked == LOOKED_KNOWN ? unwind(s, name) : looked < 0 ? looked : 0;
}

int incstack_heap_stack_unwinding_to(struct incstack_heap_stack *s, uintptr_t top, uintptr_t name)
{
	int error = enter(s);
	if (error)
		return error;
	if (!is_name(top) || !is_name(name))
		error = INCSTACK_EINVAL;
	else if (s->count)
		error = look_and_unwind(s, top, name);
	leave(s);
	return error;
}

uintptr_t incstack_heap_stack_marked(const struct incstack_heap_stack *s, size_t n)
{
	return s && n < s->count ? s->barriers[s->count - 1 - n].at->frame.name : 0;
}
