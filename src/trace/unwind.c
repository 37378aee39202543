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
	if (!rt->embedder.code.find_rule)
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
	t->pc = t->rt->embedder.code.logical_pc(t->rt->context, t->slot, t->pc);
}

/* What a return address stands for that the embedder may have replaced by the address of a handler,
 * which has no rule. */
static uintptr_t logical_pc(const struct stepper *w, uintptr_t slot, uintptr_t pc)
{
	runtime *rt = w->rt;
	if (__builtin_expect(!rt->embedder.code.logical_pc || !slot, 1))
		return pc;
	if (rt->embedder.code.find_rule && rule_known(incstack__rule_of(w, pc, false)))
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

/* The position that the word in a return slot stands for. Sees through a thunk of ours and through
 * a return address that the embedder has replaced. Returns 0, unknown, if the embedder would have
 * to be asked but must not be. */
uintptr_t incstack__position(const struct stepper *w, uintptr_t slot, uintptr_t pc)
{
	return logical_pc(w, slot, is_thunk(pc) ? thunk_cell(pc)->resume : pc);
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

static bool read_word(const void *stepper, const struct cursor *at, uintptr_t address,
		      uintptr_t *word)
{
	if (!readable(stepper, at, address))
		return false;
	*word = stack_word(address);
	return true;
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

/* The step by a rule that is a guess. It reads nothing outside of the stack. A chain of frame pointers ends
 * with 0. The outermost frame may return to an address that does not stand behind a call. */
static enum step step_by_pointer(const struct stepper *w, struct cursor *at, uintptr_t *slot,
				 const struct incstack_rule *rule)
{
	bool (*returns_into)(void *, uintptr_t) = w->rt->embedder.code.returns_into;
	struct cursor to = *at;
	enum step step;
	*slot = 0;
	if (rule->kind == INCSTACK_RULE_FP && !at->fp)
		return STEP_END;
	if (!returns_into || !in_stack(w, at->sp) ||
	    (rule->kind == INCSTACK_RULE_FP && at->fp < at->sp))
		return STEP_UNKNOWN;
	step = step_by_rule(read_word, w, &to, rule, slot);
	if (step > STEP_END)
		return STEP_UNKNOWN;
	if (step == STEP_END || (!is_thunk(to.pc) && !returns_into(w->rt->context, to.pc)))
		return to.fp ? STEP_UNKNOWN : STEP_END;
	*at = to;
	return STEP_FRAME;
}

/* Moves *at to its caller by the rule. *slot becomes the return slot, or 0 if the caller was
 * interrupted by a signal and so has none. */
enum step incstack__step_by(const struct stepper *w, struct cursor *at, uintptr_t *slot,
			    packed_rule rule)
{
	if (rule_plain(rule) && in_stack(w, at->sp))
		return step_plainly(w, at, slot, rule);
	const struct incstack_rule r = incstack__rule_unpack(rule);
	if (rule_by_pointer(rule))
		return step_by_pointer(w, at, slot, &r);
	const enum step step = step_by_rule(read_word, w, at, &r, slot);
	if (step < STEP_UNKNOWN)
		return step;
	return rule == RULE_FRAME_POINTER ? STEP_END : STEP_UNKNOWN;
}

/* Makes the step of incstack__step_by() by the rule of the frame's pc. */
enum step incstack__step(const struct stepper *w, struct cursor *at, uintptr_t *slot,
			 packed_rule *rule)
{
	*rule = incstack__rule_of(w, at->pc, at->exact);
	return incstack__step_by(w, at, slot, *rule);
}

/* If *at is in a thunk or in the trampoline, a return is being served. Moves to the frame that runs
 * next; its pc is 0 if that frame is unknown. The registers of *at may be any words. */
bool incstack__pass_trampoline(const struct stepper *w, struct cursor *at)
{
	if (!incstack__trampoline_contains(at->pc))
		return false;
	struct cursor to = {.pc = 0, .sp = at->sp, .fp = at->fp, .signal = at->signal};
	const uintptr_t first = incstack__entry_reads(at);
	const struct cursor low = {.sp = first};
	if (is_thunk(at->pc))
		to.pc = thunk_cell(at->pc)->resume;
	else if (readable(w, &low, first) && readable(w, &low, first + sizeof(first)))
		incstack__entry_state(at, &to);
	*at = to;
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
	if (!incstack__pass_trampoline(&w, &at))
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
		incstack__pass_trampoline(w, at);
	else
		at->pc = incstack__position(w, slot, at->pc);
	return at->pc ? STEP_FRAME : STEP_UNKNOWN;
}
