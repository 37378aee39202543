/* SPDX-License-Identifier: MIT
 *
 * Walks that a later sample may find again. A program mostly samples the same stacks again and again:
 * of the samples of perl, 90 % are at the same addresses with the same callers as an earlier sample
 * of the same batch. Such a sample compares the return slots with the objects of the earlier walk,
 * seven instructions a frame instead of some 36, and shares the objects (D157).
 *
 * A remembered walk began at {pc, sp} and led over ordinary frames to the known chain. No rule on
 * its way took the CFA from the frame pointer. So {pc, sp} of each frame, and its rule, determine the
 * return slot. If the pc and the sp of the top are the same, and each slot has the same word, then by
 * induction each frame is the same. It counts as a part of the known chain that has to be compared, as in
 * mode validate: whether a frame returned and was called again from the same place is not known.
 */
#ifndef INCSTACK__REMEMBERED_H
#define INCSTACK__REMEMBERED_H

#include "barrier.h"
#include "unwind.h"

enum { WALKS_LOG = 8 };

/* The objects of a walk: the top and its callers, which are neighbours in memory. */
struct remembered_walk {
	const object *top, *end; /* both null: no walk */
};

struct remembered {
	uint64_t rules_invalidated; /* the runtime's count when the walks were made */
	struct remembered_walk at[1 << WALKS_LOG];
};

/* remembered.c */
void incstack__remembered_free(stack *s);
/* Forgets all walks, because their objects are handed over, or because rules have changed. */
void incstack__remembered_clear(stack *s);

/* Where a walk from {pc, sp} is remembered. Null: nothing is. */
static inline struct remembered_walk *remembered_at(const stack *s, uintptr_t pc, uintptr_t sp)
{
	struct remembered *r = s->remembered;
	if (!r)
		return NULL;
	return &r->at[(pc ^ sp << 20) * 0x9e3779b97f4a7c15u >> (64 - WALKS_LOG)];
}

static inline uint64_t rules_invalidated(const stack *s)
{
	return atomic_load_explicit(&s->runtime->rules_invalidated, memory_order_relaxed);
}

/* Whether the thunk of the youngest known frame is still in its return slot. */
static inline bool newest_holds(const stack *s)
{
	return stack_word(s->newest->address - sizeof(uintptr_t)) == s->newest_thunk;
}

/* Whether the frames of the walk all are on the stack now, between a top at {pc, sp} and the known
 * chain (I29). False also if a sample would plant a barrier before it reached the known chain. */
static inline bool remembered_holds(stack *s, const struct remembered_walk *w, uintptr_t pc,
				    uintptr_t sp)
{
	const object *o = w->top, *end = w->end;
	if (!o || o->function != pc || o->address != sp || end > o + 1 + s->walk_limit)
		return false;
	if (s->remembered->rules_invalidated != rules_invalidated(s)) {
		incstack__remembered_clear(s);
		return false;
	}
	while (++o < end)
		if (stack_word(o->address - sizeof(uintptr_t)) != o->function)
			return false;
	return end[-1].parent == s->newest && newest_holds(s);
}

/* Remembers a walk that is complete and counted (I8). If rules have changed since walks were last
 * forgotten, the next sample that would use a walk forgets all. */
static inline void remember(struct remembered_walk *w, const object *top, const object *end)
{
	*w = (struct remembered_walk){top, end};
}

#endif
