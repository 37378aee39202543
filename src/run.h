/* SPDX-License-Identifier: MIT
 *
 * The part of a walk that nearly all of its time goes into: over frames as nearly
 * all are. A sample inlines it, and leaves every other frame to the walk.
 */
#ifndef INCSTACK__RUN_H
#define INCSTACK__RUN_H

#include <string.h>

#include "internal.h"

/* Where a run came to: the objects it made end there. */
struct reach {
	object *end;
	uintptr_t fp;
	enum stop {
		STOP_UNUSUAL = 1, /* not 0, which would be kept in a register for it */
		STOP_MET,         /* the next frame is known by its live barrier */
		STOP_SPENT,       /* the next frame, `ahead`, is ordinary, but one too many */
		STOP_BASE,        /* it is the outermost */
	} stop;
	struct {
		uintptr_t pc, sp, fp;
	} ahead;
};

/* Where no object of a run that begins at first may begin any more: after so many callers,
 * or where the memory ends, with room left for a trace. */
static inline uintptr_t end_of_run(const stack *s, const object *first, uint32_t callers)
{
	uintptr_t end = (uintptr_t)first + callers * sizeof(object);
	uintptr_t full = (uintptr_t)(s->arena.limit - 1) - (sizeof(object) - 1);
	return end < full ? end : full;
}

/* The last two members of an object, in one store. */
static inline void object_set(object *o, int32_t bci, uint32_t flags)
{
	uint64_t both = (uint32_t)bci | (uint64_t)flags << 32;
	memcpy(&o->bci, &both, sizeof(both));
}
_Static_assert(offsetof(object, flags) == offsetof(object, bci) + sizeof(int32_t), "one store");

/* The rule of a frame at sp. It is, mostly, that of the frame which stood there last: taken
 * from there, it does not keep the next frame waiting for the look-up. */
static inline packed_rule foreseen(stack *s, uintptr_t sp, packed_rule rule)
{
	packed_rule was = s->rule_at[sp / 16 % RULES_AT], same = was;
	__asm__("" : "+r"(same)); /* or the compiler would take `rule`, being equal */
	if (__builtin_expect(same == rule, 1))
		return was;
	__asm__("" : "+r"(sp)); /* where it lies is not worked out before it is wanted */
	s->rule_at[sp / 16 % RULES_AT] = (uint32_t)rule;
	return rule;
}

/* walk.c: whether the general walk makes the same objects of the frames of a run. */
bool incstack__run_agrees(stack *s, struct cursor at, const object *first, const struct reach *r);

/* Goes on from the frame {sp, fp}, whose rule has that key, while frames have a plain rule,
 * lie inside the stack and are not known; the objects of callers begin at first. What stops
 * it wants a closer look. At `thunk` is what the slot of the known frame holds if it has a
 * barrier. `hidden` is the stack's hidden_rule. Branches on the rule, not
 * arithmetic, lead to the next frame: they are foreseen, and then its loads do not wait. */
__attribute__((always_inline)) static inline struct reach
run_frames(stack *s, uintptr_t key, uintptr_t sp, uintptr_t fp, const object *known,
	   const uintptr_t *thunk, object *first, uintptr_t end, int32_t hidden)
{
	/* pairs with the release in rule.c; null where slots may hold what is no position */
	const struct rule_table *t =
		atomic_load_explicit(&s->runtime->run_rules, memory_order_acquire);
	const uintptr_t limit = known ? known->address : s->high;
	struct reach r;
	r.end = first;
	r.fp = fp;
	r.stop = STOP_UNUSUAL;
	packed_rule rule = t && sp >= s->low ? rule_in(t, key) : 0;
	uintptr_t cfa;
	if (!rule_plain(rule))
		return r;
	for (;;) {
		if (__builtin_expect(rule == RULE_FRAME_POINTER, 1)) {
			cfa = r.fp + 16;
			if (!frame_ordinary(sp, cfa, cfa - 16, limit))
				break;
			fp = stack_word(cfa - 16);
		} else {
			rule = foreseen(s, sp, rule);
			cfa = sp + rule_cfa(rule);
			if (rule_from_fp(rule)) {
				cfa += r.fp - sp;
				if (!frame_ordinary(sp, cfa, cfa - rule_fp(rule), limit))
					break;
			} else if (cfa >= limit) { /* rule.c: the words lie in the frame */
				break;
			}
			fp = rule_fp(rule) ? stack_word(cfa - rule_fp(rule)) : r.fp;
		}
		uintptr_t word = stack_word(cfa - sizeof(uintptr_t));
		packed_rule next = rule_in(t, word);
		bool spent = (uintptr_t)r.end >= end;
		if (!rule_plain(next) || spent) {
			if (!spent && next == RULE_END)
				r.stop = STOP_BASE;
			else if (rule_plain(next) && cfa % sizeof(uintptr_t) == 0)
				r.stop = STOP_SPENT;
			r.ahead.pc = word;
			r.ahead.sp = cfa;
			r.ahead.fp = fp;
			return r;
		}
		r.fp = fp;
		sp = cfa;
		rule = next;
		object *o = r.end++;
		o->parent = r.end;
		o->method = word;
		o->address = cfa;
		object_set(o, (int32_t)(uint32_t)next | hidden, OBJECT_ORDINARY);
	}
	if (cfa == limit && stack_word(cfa - sizeof(uintptr_t)) == *thunk)
		r.stop = STOP_MET;
	return r;
}

/* Debug builds walk again, frame by frame. */
__attribute__((always_inline)) static inline struct reach run(stack *s, uintptr_t key, uintptr_t sp,
							      uintptr_t fp, const object *known,
							      const uintptr_t *thunk, object *first,
							      uintptr_t end, int32_t hidden)
{
	struct reach r = run_frames(s, key, sp, fp, known, thunk, first, end, hidden);
#ifdef INCSTACK_DEBUG
	struct cursor at = {.pc = key, .sp = sp, .fp = fp};
	s->stats.broken += !incstack__run_agrees(s, at, first, &r);
#endif
	return r;
}

/* walk.c */
object *incstack__walk_on(const struct walker *w, struct path *p, struct reach r);

/* The objects of a run, up to end, become callers of child: in this order, since a
 * jump out of a handler may come between (I8). */
__attribute__((always_inline)) static inline void commit(stack *s, object *child, object *run_end,
							 object *parent)
{
	object *first = s->arena.object;
	if (run_end == first) {
		child->parent = parent;
		return;
	}
	run_end[-1].parent = parent;
	atomic_signal_fence(memory_order_seq_cst);
	s->arena.object = run_end;
	atomic_signal_fence(memory_order_seq_cst);
	child->parent = first;
}

/* The object of the frame ahead, to be guarded by a barrier. */
static inline object skeleton(uintptr_t pc, uintptr_t sp, object *known)
{
	return (object){known, pc, sp, -1, INCSTACK_OBJECT_RAW | OBJECT_GAP};
}

#endif
