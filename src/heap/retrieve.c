/* SPDX-License-Identifier: MIT
 *
 * Completes the open traces and hands them over (ICPE'15 section 5.3). The tree shares the objects with
 * the stack, which never changes complete ones.
 */
#include "capture.h"
#include "compact.h"

struct tree {
	struct incstack_heap_tree shown;
	struct space *space;
};

/* Fills all gaps. The frames are checked first, because they are walked. */
static int complete(stack *s, uintptr_t top)
{
	if (!s->gaps)
		return 0;
	int error = incstack__heap_notice_popped(s, top);
	return error ? error : incstack__heap_complete(s, 0);
}

static int hand_over(stack *s, const struct incstack_heap_tree **out)
{
	int error = reserve(s, SLOTS(sizeof(struct tree)));
	if (error)
		return error;
	struct tree *tree = (struct tree *)(void *)s->arena.next;
	s->arena.next += SLOTS(sizeof(struct tree));
	*tree = (struct tree){{s->first, s->open}, s->arena.space};
	*out = &tree->shown;
	s->arena.trees++;
	s->first = s->last = NULL;
	s->open = 0;
	compact_if_due(s);
	if (!s->count && s->mode == INCSTACK_HEAP_BARRIER)
		incstack__heap_forget_objects(s);
	return 0;
}

int incstack_heap_stack_retrieve(struct incstack_heap_stack *s, uintptr_t top,
				 const struct incstack_heap_tree **tree)
{
	int error = enter(s);
	if (error)
		return error;
	error = tree ? complete(s, top) : INCSTACK_EINVAL;
	if (!error)
		error = hand_over(s, tree);
	leave(s);
	return error;
}

void incstack_heap_tree_release(const struct incstack_heap_tree *tree)
{
	if (tree)
		incstack__heap_tree_dropped(((const struct tree *)(const void *)tree)->space);
}

int incstack_heap_stack_lift(struct incstack_heap_stack *s, uintptr_t top)
{
	int error = enter(s);
	if (error)
		return error;
	error = s->count ? incstack__heap_notice_popped(s, top) : 0;
	if (!error)
		error = incstack__heap_complete(s, 0);
	while (!error && s->count)
		set_mark(s, incstack__heap_pop(s).at->frame.name, 0);
	if (!error)
		s->remembered = NULL;
	leave(s);
	return error;
}
