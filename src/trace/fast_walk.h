/* SPDX-License-Identifier: MIT
 *
 * The fast walk: the loop over ordinary frames, in which walks spend nearly all their time.
 * Samples inline it. The general walk (walk.c) handles every frame that is not ordinary.
 *
 * What bounds the loop is the chain of dependent loads from one frame to the next:
 * - With a frame pointer, the chain is one load a frame: the saved frame pointer at cfa - 16.
 * - Without one, the next frame lies at sp plus the CFA offset of the rule. The rule is looked
 *   up by the return address. So the plain chain would be: load the return address, hash it,
 *   load the table's key and rule, add. predicted_rule() shortens it: the rule is read from a small
 *   array indexed by sp, and the looked-up rule is only compared with it. Chain: index the
 *   array by sp, load, shift, add.
 * The rest hangs off the chain and overlaps with the next frames as long as branches are
 * predicted: the look-up by return address, the tests, and the stores of the object. Therefore
 * branches, not arithmetic or conditional moves, select how the next frame is found, because a
 * predicted branch lets the next load start before the rule is known.
 *
 * Both empty __asm__ statements in predicted_rule() carry weight; the comments there say why.
 * Without them the code is correct but slower. No operation in the loop needs a fence, because
 * commit() and the callers order the stores (I8).
 *
 * Wall-clock times of this loop are too noisy to compare two versions; count instructions:
 *   valgrind --tool=callgrind build/release/bench/walk_bench --cell fp,64,1 --peer ours \
 *     --iterations 100000
 * less the same with --peer none, divided by the iterations. docs/performance.md ("Counting
 * instructions") has the numbers to expect.
 */
#ifndef INCSTACK__FAST_WALK_H
#define INCSTACK__FAST_WALK_H

#include <string.h>

#include "unwind.h"

/* How far a fast walk got. */
struct fast_walk {
	object *end;  /* the end of the objects that it made */
	uintptr_t fp; /* the frame pointer of the last frame reached */
	enum stop {
		/* Not ordinary. Not 0, because the compiler would keep a 0 in a register. */
		STOP_OTHER = 1,
		STOP_KNOWN, /* the next frame is known by its live barrier */
		STOP_SPENT, /* the next frame, `ahead`, is ordinary, but the budget is spent */
		STOP_BASE,  /* the next frame, `ahead`, is the outermost */
	} stop;
	struct {
		uintptr_t pc, sp, fp;
	} ahead;
	bool by_fp; /* whether a rule took the CFA from the frame pointer */
};

/* The address at or above which a fast walk whose objects begin at `first` may start no object:
 * after that many callers, or where the chunk has no room left for an object and a trace. */
static inline uintptr_t fast_walk_end(const stack *s, const object *first, uint32_t callers)
{
	uintptr_t end = (uintptr_t)first + callers * sizeof(object);
	uintptr_t full = (uintptr_t)(s->arena.limit - 1) - (sizeof(object) - 1);
	return end < full ? end : full;
}

/* Writes the last two members of an object in one store. */
static inline void object_set(object *o, int32_t position, uint32_t flags)
{
	uint64_t both = (uint32_t)position | (uint64_t)flags << 32;
	memcpy(&o->position, &both, sizeof(both));
}
_Static_assert(offsetof(object, flags) == offsetof(object, position) + sizeof(int32_t),
	       "one store");

/* Returns `rule`, the rule of the frame at sp, but by a shorter chain of dependencies. The
 * frame that was at this address last mostly had the same rule. So the remembered rule is
 * returned and `rule`, which comes from the slower look-up, is only compared with it. */
static inline packed_rule predicted_rule(stack *s, uintptr_t sp, packed_rule rule)
{
	packed_rule was = s->rule_at[sp / 16 % RULES_AT], same = was;
	/* Hides that `same` equals `was`. Otherwise the compiler, which knows after the
	 * comparison that `was` equals `rule`, may return `rule` and restore the long chain. */
	__asm__("" : "+r"(same));
	if (__builtin_expect(same == rule, 1))
		return was;
	/* Makes the compiler compute the address of the entry again here, on the rare path.
	 * Otherwise it would keep the address in a register across the comparison. */
	__asm__("" : "+r"(sp));
	s->rule_at[sp / 16 % RULES_AT] = (uint32_t)rule;
	return rule;
}

/* walk.c: whether the general walk finds the same frames, and in the end the same frame pointer, if
 * `fp` is not null. */
bool incstack__fast_walk_agrees(stack *s, struct cursor at, const object *first, const object *end,
				const uintptr_t *fp);

/* Walks from the frame {sp, fp}, whose rule has the key `key`, while the frames have a plain
 * rule, lie inside the stack and are not known. It writes the objects of the callers from
 * `first` on. The general walk handles the frame at which the fast walk stops. *thunk is the
 * word in the return slot of `known` if `known` has a barrier. `hidden` is the stack's
 * validation.hidden. */
__attribute__((always_inline)) static inline struct fast_walk
fast_walk_frames(stack *s, uintptr_t key, uintptr_t sp, uintptr_t fp, const object *known,
		 const uintptr_t *thunk, object *first, uintptr_t end, int32_t hidden)
{
	/* acquire: pairs with the release in grow (rule.c). The pointer is null if a return
	 * slot may hold an address that is not a position (embedder.code.logical_pc). */
	const struct rule_table *t =
		atomic_load_explicit(&s->runtime->fast_rules, memory_order_acquire);
	const uintptr_t limit = known ? known->address : s->high;
	struct fast_walk r;
	r.end = first;
	r.fp = fp;
	r.by_fp = false;
	r.stop = STOP_OTHER;
	packed_rule rule = t && sp >= s->low ? rule_in(t, key) : 0;
	uintptr_t cfa;
	if (!rule_plain(rule))
		return r;
	for (;;) {
		if (__builtin_expect(rule == RULE_FRAME_POINTER, 1)) {
			cfa = r.fp + 16;
			r.by_fp = true;
			if (!frame_ordinary(sp, cfa, cfa - 16, limit))
				break;
			fp = stack_word(cfa - 16);
		} else {
			rule = predicted_rule(s, sp, rule);
			cfa = sp + rule_cfa(rule);
			if (__builtin_expect(rule_from_fp(rule), 0)) {
				cfa += r.fp - sp;
				r.by_fp = true;
				if (!frame_ordinary(sp, cfa, cfa - rule_fp(rule), limit))
					break;
			} else if (cfa >= limit) { /* rule.c, plain(): the words are inside */
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
		o->function = word;
		o->address = cfa;
		object_set(o, (int32_t)(uint32_t)next | hidden, OBJECT_ORDINARY);
	}
	if (cfa == limit && stack_word(cfa - sizeof(uintptr_t)) == *thunk)
		r.stop = STOP_KNOWN;
	return r;
}

/* fast_walk_frames(). Debug builds repeat it frame by frame by the general walk and count
 * differences. */
__attribute__((always_inline)) static inline struct fast_walk
fast_walk(stack *s, uintptr_t key, uintptr_t sp, uintptr_t fp, const object *known,
	  const uintptr_t *thunk, object *first, uintptr_t end, int32_t hidden)
{
	struct fast_walk r = fast_walk_frames(s, key, sp, fp, known, thunk, first, end, hidden);
#ifdef INCSTACK_DEBUG
	struct cursor at = {.pc = key, .sp = sp, .fp = fp};
	s->broken += !incstack__fast_walk_agrees(s, at, first, r.end, &r.fp);
#endif
	return r;
}

struct path;
/* walk.c */
object *incstack__walk_continue(const struct walker *w, struct path *p, struct fast_walk r);

/* Makes the objects of a fast walk, up to `end`, callers of `child`. The order of the stores
 * matters, because a jump out of a signal handler may come between any two of them (I8). */
__attribute__((always_inline)) static inline void commit(stack *s, object *child, object *end,
							 object *parent)
{
	object *first = s->arena.object;
	if (end == first) {
		child->parent = parent;
		return;
	}
	end[-1].parent = parent;
	atomic_signal_fence(memory_order_seq_cst);
	s->arena.object = end;
	atomic_signal_fence(memory_order_seq_cst);
	child->parent = first;
}

/* The object of the frame at {pc, sp}, which the caller guards by a barrier. */
static inline object skeleton(uintptr_t pc, uintptr_t sp, object *known)
{
	return (object){known, pc, sp, -1, INCSTACK_OBJECT_RAW | OBJECT_GAP};
}

#endif
