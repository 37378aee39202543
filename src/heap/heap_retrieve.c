/* SPDX-License-Identifier: MIT
 *
 * Completes the open traces and hands them over (ICPE'15 section 5.3). The tree shares the objects with
 * the stack, which never changes complete ones.
 */
#include "capture.h"
#include "compact.h"

/* Fills all gaps. The frames are checked first, because they are walked. */
static int complete(stack *s, uintptr_t top)
{
	if (!s->gaps)
		return 0;
	int error = incstack__heap_look(s, top, 0);
	return error < 0 ? error : incstack__heap_complete(s, 0);
}

/* Makes the tree of a retrieve that comes before any sample. */
static int make_empty(stack *s)
{
	begin(s);
	int error = reserve(s, SLOTS(sizeof(struct tree)));
	if (error)
		return error;
	open_tree(s);
	s->scratch_end = s->arena.next;
	return 0;
}

static inline void hand_over(stack *s, const struct incstack_heap_tree **out)
{
	*out = &s->tree->shown;
	s->tree = NULL;
	s->arena.trees++;
}

NOINLINE static int retrieve_slowly(stack *s, uintptr_t top, const struct incstack_heap_tree **out)
{
	int error = enter(s);
	if (error)
		return error;
	error = out ? complete(s, top) : INCSTACK_EINVAL;
	if (!error && !s->tree)
		error = make_empty(s);
	if (!error) {
		hand_over(s, out);
		if (!s->count && s->mode == INCSTACK_HEAP_BARRIER)
			incstack__heap_forget_objects(s);
	}
	leave(s);
	return error;
}

int incstack_heap_stack_retrieve(struct incstack_heap_stack *s, uintptr_t top,
				 const struct incstack_heap_tree **tree)
{
	/* Nothing is to be completed or given back, so nobody is called. */
	if (!LIKELY(is_free(s) && s->tree && !s->gaps && (s->count || s->mode) && tree))
		return retrieve_slowly(s, top, tree);
	hand_over(s, tree);
	return 0;
}

static inline struct space *space_of(const struct incstack_heap_tree *tree)
{
	return ((const struct tree *)(const void *)tree)->space;
}

NOINLINE static int release_slowly(stack *s, const struct incstack_heap_tree *tree)
{
	int error = s ? enter(s) : 0;
	if (error)
		return error;
	if (tree)
		incstack__heap_tree_dropped(space_of(tree));
	if (s)
		leave(s);
	return 0;
}

int incstack_heap_tree_release(const struct incstack_heap_tree *tree, struct incstack_heap_stack *s)
{
	/* The stack itself keeps the space, so nothing is freed. */
	if (!LIKELY(is_free(s) && tree && space_of(tree) == s->arena.space))
		return release_slowly(s, tree);
	s->arena.trees--;
	return 0;
}

/* The frames are gone, as was announced: the open traces are truncated. */
static void forget(stack *s)
{
	const uint64_t stale = s->stats.stale;
	incstack__heap_remove_stale(s, 0, s->count);
	s->stats.stale = stale;
	s->remembered = NULL;
	if (!s->tree)
		incstack__heap_forget_objects(s);
}

/* The frames are there: the traces are completed. */
static int lift(stack *s, uintptr_t top)
{
	int error = s->count ? incstack__heap_look(s, top, 0) : 0;
	if (error >= 0)
		error = incstack__heap_complete(s, 0);
	while (!error && s->count)
		set_mark(s, incstack__heap_pop(s).at->frame.name, 0);
	if (!error)
		s->remembered = NULL;
	return error;
}

int incstack_heap_stack_lift(struct incstack_heap_stack *s, uintptr_t top)
{
	int error = enter(s);
	if (error)
		return error;
	if (top)
		error = lift(s, top);
	else
		forget(s);
	leave(s);
	return error;
}
