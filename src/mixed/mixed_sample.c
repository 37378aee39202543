/* SPDX-License-Identifier: MIT
 *
 * Samples of two stacks at once. The two traces of a sample carry its number, by which they find each
 * other again: a trace whose partner was refused is skipped.
 */
#include <incstack/mixed.h>

int incstack_mixed_sample(struct incstack_mixed *mixed, const struct incstack_top *machine_top,
			  uintptr_t heap_top, uint64_t id, uint64_t weight)
{
	if (!mixed)
		return INCSTACK_EINVAL;
	if (mixed->kept)
		return INCSTACK_EBUSY;
	const uint64_t number = ++mixed->samples;
	int error = incstack_stack_sample_at_poll(mixed->machine, number, weight, machine_top);
	return error ? error : incstack_heap_stack_sample(mixed->heap, heap_top, number, id);
}

int incstack_mixed_retrieve(struct incstack_mixed *mixed, uintptr_t heap_top,
			    struct incstack_mixed_tree *tree)
{
	if (!mixed || !tree)
		return INCSTACK_EINVAL;
	int error = 0;
	if (!mixed->kept)
		error = incstack_stack_retrieve(mixed->machine, &mixed->kept);
	if (!error)
		error = incstack_heap_stack_retrieve(mixed->heap, heap_top, &tree->heap);
	if (error)
		return error;
	tree->machine = mixed->kept;
	mixed->kept = NULL;
	return 0;
}

void incstack_mixed_tree_release(struct incstack_mixed_tree *tree)
{
	if (!tree)
		return;
	incstack_tree_release(tree->machine);
	incstack_heap_tree_release(tree->heap, NULL);
	*tree = (struct incstack_mixed_tree){NULL, NULL};
}

int incstack_mixed_tree_next(const struct incstack_mixed_tree *tree,
			     struct incstack_mixed_trace *trace)
{
	if (!tree || !tree->machine || !tree->heap || !trace)
		return INCSTACK_EINVAL;
	const struct incstack_trace *m =
		trace->machine ? trace->machine->next : tree->machine->traces;
	const struct incstack_heap_trace *h = trace->heap ? trace->heap->next : tree->heap->traces;
	while (m && h && m->id != h->id)
		if (m->id < h->id)
			m = m->next;
		else
			h = h->next;
	if (!m || !h)
		return 0;
	*trace = (struct incstack_mixed_trace){h->weight, m->weight, m, h};
	return 1;
}
