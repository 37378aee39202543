/* SPDX-License-Identifier: MIT
 *
 * One step of a walk: from a frame to its caller, by the unwind rule of its pc.
 */
#include "mapped.h"
#include "shared.h"
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

packed_rule incstack__rule_of(const struct stepper *w, uintptr_t pc, bool exact)
{
	runtime *rt = w->rt;
	uintptr_t address = pc - !exact;
	if (!rt->embedder.find_rule)
		return RULE_FRAME_POINTER;
	packed_rule rule = incstack__rule_find(rt, address);
	if (__builtin_expect(rule_known(rule), 1))
		return rule;
	if (w->ask <= ASK_QUICKLY)
		return incstack__rule_in_handler(rt, address, rule, w->ask == ASK_QUICKLY);
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
uintptr_t incstack__logical_pc(const struct stepper *w, uintptr_t slot, uintptr_t pc)
{
	runtime *rt = w->rt;
	if (__builtin_expect(!rt->embedder.logical_pc || !slot, 1))
		return pc;
	if (rt->embedder.find_rule && rule_known(incstack__rule_of(w, pc, false)))
		return pc;
	struct translation t = {rt, slot, pc};
	if (w->ask <= ASK_QUICKLY)
		return 0;
	if (w->ask == ASK_SAVED)
		incstack__call_saved(translate, &t, rt->xsave_bytes);
	else
		translate(&t);
	return t.pc;
}

static bool in_stack(const struct stepper *w, uintptr_t address)
{
	return address >= w->low && address < w->high;
}

/* Whether the word at the address can be read. It must not lie below the frame. For a frame
 * inside a known stack it must lie in the stack; for other frames it must be mapped. */
static bool readable(const struct stepper *w, const struct cursor *at, uintptr_t address)
{
	if (address % sizeof(uintptr_t) || address < at->sp)
		return false;
	return in_stack(w, at->sp) ? in_stack(w, address) : incstack__mapped(w->mapped, address);
}

static bool cfa_of(const struct stepper *w, const struct cursor *at, const struct incstack_rule *r,
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
		if (!readable(w, at, at->fp + offset))
			return false;
		*cfa = stack_word(at->fp + offset);
		return true;
	default:
		return false;
	}
}

/* Reads the words of a frame, which can be read. In a function's end, after it has restored the
 * frame pointer, the word at `saved` lies below the frame, and counts as the slot. */
static enum step read_frame(struct cursor *at, uintptr_t cfa, uintptr_t slot, uintptr_t saved)
{
	if (saved != slot)
		at->fp = stack_word(saved);
	at->pc = stack_word(slot);
	at->sp = cfa;
	at->exact = false;
	return at->pc ? STEP_FRAME : STEP_END;
}

/* The step from a frame in a stack with known bounds, by a plain rule. */
static enum step step_plainly(const struct stepper *w, struct cursor *at, uintptr_t *slot,
			      packed_rule rule)
{
	const uintptr_t cfa = (rule_from_fp(rule) ? at->fp : at->sp) + rule_cfa(rule);
	uintptr_t saved = *slot = cfa - sizeof(uintptr_t);
	if (rule_fp(rule) && !(at->exact && cfa - rule_fp(rule) < at->sp))
		saved = cfa - rule_fp(rule);
	at->signal = false;
	if (!frame_ordinary(at->sp, cfa, saved, w->high + 1))
		return rule == RULE_FRAME_POINTER ? STEP_END : STEP_UNKNOWN;
	return read_frame(at, cfa, *slot, saved);
}

/* Moves *at to its caller by the rule. *slot becomes the return slot, or 0 if the caller was
 * interrupted by a signal and so has none. */
enum step incstack__step_by(const struct stepper *w, struct cursor *at, uintptr_t *slot,
			    packed_rule rule)
{
	if (rule_plain(rule) && in_stack(w, at->sp))
		return step_plainly(w, at, slot, rule);
	struct incstack_rule r = incstack__rule_unpack(rule);
	at->signal = r.kind == INCSTACK_RULE_SIGNAL;
	if (r.kind == INCSTACK_RULE_END)
		return STEP_END;
	if (r.kind == INCSTACK_RULE_SIGNAL) {
		*slot = 0;
		if (!readable(w, at, at->sp) ||
		    !readable(w, at, at->sp + INCSTACK__SIGNAL_BYTES - sizeof(uintptr_t)))
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
	if (at->exact && saved < at->sp)
		saved = *slot;
	if (!readable(w, at, *slot) || !readable(w, at, saved))
		return rule == RULE_FRAME_POINTER ? STEP_END : STEP_UNKNOWN;
	return read_frame(at, cfa, *slot, saved);
}

/* The same by the rule of its pc. */
enum step incstack__step(const struct stepper *w, struct cursor *at, uintptr_t *slot,
			 packed_rule *rule)
{
	*rule = incstack__rule_of(w, at->pc, at->exact);
	return incstack__step_by(w, at, slot, *rule);
}

/* If *at is in a thunk or in the trampoline's common entry, a return is being served. Moves to the
 * frame that runs next; its pc is 0 if it is unknown. */
bool incstack__pass_trampoline(struct cursor *at)
{
	struct cursor caller = *at;
	if (is_thunk(at->pc))
		caller.pc = thunk_cell(at->pc)->resume;
	else if (!incstack__entry_state(at, &caller))
		return false;
	caller.exact = false;
	*at = caller;
	return true;
}

/* The same for a frame that a signal interrupted, whose registers may be any words. */
bool incstack__pass_trampoline_below(const struct stepper *w, struct cursor *at)
{
	const uintptr_t first = incstack__entry_reads(at);
	const struct cursor low = {.sp = first};
	if (!incstack__trampoline_contains(at->pc))
		return false;
	if (!readable(w, &low, first) || !readable(w, &low, first + sizeof(first)))
		at->pc = 0;
	else
		incstack__pass_trampoline(at);
	return true;
}

/* For walkers of others. */
bool incstack__frame_pass_trampoline(struct incstack_frame *frame)
{
	struct mapped mapped = {0, 0};
	const struct stepper w = {.mapped = &mapped};
	struct cursor at = {.pc = frame->pc, .sp = frame->sp, .fp = frame->fp};
	if (!is_thunk(at.pc) && !(frame->flags & INCSTACK_FRAME_EXACT))
		return false; /* the trampoline has called the core */
	if (!incstack__pass_trampoline_below(&w, &at))
		return false;
	*frame = (struct incstack_frame){at.pc, at.sp, at.fp, 0, 0};
	return true;
}

/* Moves *at to its caller by the rule, and sees through what stands in the return slot instead of
 * the position: a thunk of ours, or the address of a handler of the embedder. */
enum step incstack__caller(const struct stepper *w, struct cursor *at, packed_rule rule)
{
	uintptr_t slot;
	enum step step = incstack__step_by(w, at, &slot, rule);
	if (step != STEP_FRAME)
		return step;
	if (at->signal)
		incstack__pass_trampoline_below(w, at);
	else if (__builtin_expect(is_thunk(at->pc) || w->rt->embedder.logical_pc, 0))
		at->pc = incstack__logical_pc(w, slot, incstack_slot_read(&at->pc));
	return at->pc ? STEP_FRAME : STEP_UNKNOWN;
}
