/* SPDX-License-Identifier: MIT
 *
 * One step of a walk: from a frame to its caller, by the unwind rule of its pc.
 */
#include "mapped.h"
#include "unwind.h"

struct question {
	runtime *rt;
	uintptr_t address;
	packed_rule rule;
};

static void learn(void *argument)
{
	struct question *q = argument;
	q->rule = q->rule ? incstack__rule_learn_again(q->rt, q->address, q->rule)
			  : incstack__rule_learn(q->rt, q->address);
}

/* Asks in a signal handler. If that is in vain, the next sample outside of one asks. */
static packed_rule learn_in_handler(stack *s, uintptr_t address, packed_rule known)
{
	packed_rule rule = incstack__rule_in_handler(s->runtime, address, known);
	if (!rule)
		s->slow_reasons |= SLOW_RULES_WANTED;
	return rule;
}

packed_rule incstack__rule_of(const struct walker *w, uintptr_t pc, bool exact)
{
	runtime *rt = w->stack->runtime;
	uintptr_t address = pc - !exact;
	if (!rt->embedder.find_rule)
		return RULE_FRAME_POINTER;
	packed_rule rule = incstack__rule_find(rt, address);
	if (__builtin_expect(rule_known(rule), 1))
		return rule;
	if (w->ask == ASK_NEVER)
		return learn_in_handler(w->stack, address, rule);
	struct question q = {rt, address, rule};
	if (w->ask == ASK_SAVED)
		incstack__call_saved(learn, &q, rt->xsave_bytes);
	else
		learn(&q);
	return q.rule;
}

struct translation {
	const runtime *rt;
	uintptr_t slot, pc;
};

static void translate(void *argument)
{
	struct translation *t = argument;
	t->pc = t->rt->embedder.logical_pc(t->rt->context, t->slot, t->pc);
}

/* The position that the return address in a slot stands for. It differs from the return address
 * if the embedder has patched the slot with the address of a handler, which has no rule. Returns
 * 0, unknown, if the embedder would have to be asked but must not be. */
uintptr_t incstack__logical_pc(const struct walker *w, uintptr_t slot, uintptr_t pc)
{
	runtime *rt = w->stack->runtime;
	if (__builtin_expect(!rt->embedder.logical_pc || !slot, 1))
		return pc;
	if (rt->embedder.find_rule && rule_known(incstack__rule_of(w, pc, false)))
		return pc;
	struct translation t = {rt, slot, pc};
	if (w->ask == ASK_NEVER)
		return 0;
	if (w->ask == ASK_SAVED)
		incstack__call_saved(translate, &t, rt->xsave_bytes);
	else
		translate(&t);
	return t.pc;
}

/* Whether the word at the address can be read. It must not lie below the frame. For a frame
 * inside a known stack it must lie in the stack; for other frames it must be mapped. */
static bool readable(stack *s, const struct cursor *at, uintptr_t address)
{
	if (address % sizeof(uintptr_t) || address < at->sp)
		return false;
	return inside(s, at->sp) && !s->anywhere ? inside(s, address)
						 : incstack__mapped(s, address);
}

/* Whether the return slot of the frame and the word at `saved` can be read. */
static bool frame_readable(stack *s, const struct cursor *at, packed_rule rule, uintptr_t cfa,
			   uintptr_t slot, uintptr_t saved)
{
	if (rule_plain(rule) && inside(s, at->sp) && !s->anywhere)
		return frame_ordinary(at->sp, cfa, saved, s->high + 1);
	return readable(s, at, slot) && readable(s, at, saved);
}

static bool cfa_of(const struct walker *w, const struct cursor *at, const struct incstack_rule *r,
		   uintptr_t *cfa)
{
	uintptr_t offset = (uintptr_t)(intptr_t)r->cfa_offset;
	switch (r->kind) {
	case INCSTACK_RULE_SP:
		*cfa = at->sp + offset;
		return true;
	case INCSTACK_RULE_FP:
		*cfa = at->fp + offset;
		return true;
	case INCSTACK_RULE_FP_DEREF:
		if (!readable(w->stack, at, at->fp + offset))
			return false;
		*cfa = stack_word(at->fp + offset);
		return true;
	default:
		return false;
	}
}

/* Moves *at to its caller. *slot becomes the return slot, or 0 if the caller was interrupted by
 * a signal and so has none. */
enum step incstack__step(const struct walker *w, struct cursor *at, uintptr_t *slot,
			 packed_rule *rule)
{
	*rule = incstack__rule_of(w, at->pc, at->exact);
	struct incstack_rule r = incstack__rule_unpack(*rule);
	at->signal = r.kind == INCSTACK_RULE_SIGNAL;
	if (r.kind == INCSTACK_RULE_END)
		return STEP_END;
	if (r.kind == INCSTACK_RULE_SIGNAL) {
		*slot = 0;
		if (!readable(w->stack, at, at->sp) ||
		    !readable(w->stack, at, at->sp + INCSTACK__SIGNAL_BYTES - sizeof(uintptr_t)))
			return STEP_UNKNOWN;
		incstack__signal_registers(at);
		return STEP_FRAME;
	}
	uintptr_t cfa, saved;
	bool realigned = r.kind == INCSTACK_RULE_FP_DEREF;
	if (!cfa_of(w, at, &r, &cfa))
		return STEP_UNKNOWN;
	*slot = saved = cfa - r.ra_offset;
	if (r.fp_offset || realigned)
		saved = (realigned ? at->fp : cfa) - r.fp_offset;
	if (at->exact && saved < at->sp) /* the end of the function has popped it already */
		saved = *slot;
	if (!frame_readable(w->stack, at, *rule, cfa, *slot, saved))
		return *rule == RULE_FRAME_POINTER ? STEP_END : STEP_UNKNOWN;
	if (saved != *slot)
		at->fp = stack_word(saved);
	at->pc = stack_word(*slot);
	at->sp = cfa;
	at->exact = false;
	return at->pc ? STEP_FRAME : STEP_END;
}
