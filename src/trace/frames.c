/* SPDX-License-Identifier: MIT
 *
 * The frame iterator: a walk that gives out one frame at a time. It uses nothing of the state that
 * samples leave but the thunks in return slots, which it sees through, and it changes nothing.
 */
#include <incstack/frames.h>

#include "frames.h"
#include "mapped.h"
#include "top.h"

enum { LOWERED_MAX = 64 }; /* a walk that meets more is in a loop */

static struct cursor cursor_of(const struct incstack_frame *f)
{
	return (struct cursor){
		.pc = f->pc, .sp = f->sp, .fp = f->fp, .exact = f->flags & INCSTACK_FRAME_EXACT};
}

static struct incstack_frame frame_of(const struct cursor *at)
{
	return (struct incstack_frame){at->pc, at->sp, at->fp, at->exact ? INCSTACK_FRAME_EXACT : 0,
				       0};
}

/* ---- from frame to frame ------------------------------------------------------------- */

/* Whether the caller lies further out, so that the walk comes to an end. Only a signal frame may
 * lead to a lower address, on another stack. */
static bool goes_on(struct incstack_frames_state *state, uintptr_t sp, const struct cursor *caller)
{
	if (caller->sp > sp)
		return true;
	return caller->signal && ++state->lowered <= LOWERED_MAX;
}

/* Moves to the caller. Returns what incstack_frames_next does. */
static int step(const struct stepper *w, struct incstack_frames *frames)
{
	struct incstack_frames_state *state = &frames->state;
	struct cursor at = cursor_of(&frames->frame);
	enum step step = incstack__caller(w, &at, state->rule);
	if (step != STEP_FRAME)
		return step == STEP_END ? 0 : INCSTACK_EUNWIND;
	if (!goes_on(state, frames->frame.sp, &at))
		return INCSTACK_EUNWIND;
	frames->frame = frame_of(&at);
	return 1;
}

/* Looks up the rule of the frame, which tells whether it is a signal frame. */
static void find_rule(const struct stepper *w, struct incstack_frames *frames)
{
	struct incstack_frame *f = &frames->frame;
	const packed_rule rule = incstack__rule_of(w, f->pc, f->flags & INCSTACK_FRAME_EXACT);
	frames->state.rule = rule;
	if (!rule_plain(rule) && incstack__rule_unpack(rule).kind == INCSTACK_RULE_SIGNAL)
		f->flags |= INCSTACK_FRAME_SIGNAL;
}

int incstack__machine_frames_next(struct incstack_frames *frames)
{
	struct incstack_frames_state *state = &frames->state;
	struct mapped mapped = {state->mapped_low, state->mapped_high};
	const struct stepper w = {state->runtime, state->low, state->high, &mapped,
				  state->interrupted ? ASK_QUICKLY : ASK_DIRECTLY};
	const int result = state->begun ? step(&w, frames) : 1;
	if (result > 0)
		find_rule(&w, frames);
	state->mapped_low = mapped.low;
	state->mapped_high = mapped.high;
	return result;
}

/* ---- what a frame is ------------------------------------------------------------------- */

static int decode(struct incstack_frames_state *state, const struct incstack_frame *frame)
{
	const struct incstack_embedder *e = &state->runtime->embedder;
	int (*ask)(void *, const struct incstack_frame *, struct incstack_virtual_frame *, int) =
		state->interrupted ? e->signals.decode : e->code.decode;
	int count =
		ask ? ask(state->runtime->context, frame, state->decoded, INCSTACK_VIRTUAL_MAX) : 0;
	return count < INCSTACK_VIRTUAL_MAX ? count : INCSTACK_VIRTUAL_MAX;
}

/* Shows the next of the frames that the physical frame decodes to, innermost first. */
static int show(struct incstack_frames *frames)
{
	struct incstack_frames_state *state = &frames->state;
	const struct incstack_virtual_frame *v = &state->decoded[state->next++];
	frames->function = v->function;
	frames->position = v->position;
	frames->kind = state->next < state->count ? INCSTACK_KIND_INLINED : v->kind;
	return 1;
}

/* Describes the physical frame that was just reached. */
static int describe(struct incstack_frames *frames)
{
	struct incstack_frames_state *state = &frames->state;
	const int count = decode(state, &frames->frame);
	state->next = 0;
	state->count = count > 0 ? (uint32_t)count : 0;
	if (state->count)
		return show(frames);
	frames->function = frames->frame.pc;
	frames->position = -1;
	frames->kind =
		state->runtime->embedder.code.decode ? INCSTACK_KIND_UNKNOWN : INCSTACK_KIND_C;
	return 1;
}

int incstack_frames_next(struct incstack_frames *frames)
{
	if (!frames)
		return INCSTACK_EINVAL;
	struct incstack_frames_state *state = &frames->state;
	if (state->next < state->count)
		return show(frames);
	if (state->result <= 0)
		return state->result;
	state->result = state->stack ? state->stack->kind->frames_next(frames)
				     : incstack__machine_frames_next(frames);
	state->begun = true;
	return state->result > 0 ? describe(frames) : state->result;
}

/* ---- the beginning ------------------------------------------------------------------------ */

/* Whether an operation on the stack is in progress, by whatever thread. It is not if this thread
 * has left it by a jump to the top, whose stack pointer is sp, or beyond. */
static bool is_busy(const stack *s, uintptr_t sp)
{
	if (!s || !s->busy)
		return false;
	return s->owner != thread_self() || !inside(s, s->busy) || s->busy >= sp;
}

/* Also refuses each further call for the iterator. */
int incstack__frames_refuse(struct incstack_frames *frames)
{
	if (!frames)
		return INCSTACK_EINVAL;
	frames->state.count = frames->state.next = 0;
	return frames->state.result = INCSTACK_EINVAL;
}

/* Sets the first frame, at the stack pointer sp of the top. `more` is 1, or what
 * incstack_frames_next returns instead of showing it. */
int incstack__frames_start(struct incstack_frames *frames, const struct incstack_frame *first,
			   uintptr_t sp, int more)
{
	struct incstack_frames_state *state = &frames->state;
	state->result = is_busy(state->stack, sp) ? INCSTACK_EBUSY : more;
	frames->frame = *first;
	return state->result < 0 ? state->result : 0;
}

/* Sets the top, whose place is set. */
int incstack__machine_frames_begin(struct incstack_frames *frames, const struct incstack_top *top)
{
	struct incstack_frames_state *state = &frames->state;
	struct mapped mapped = {0, 0};
	const struct stepper w = {state->runtime, state->low, state->high, &mapped, ASK_NEVER};
	if (!top || !incstack__top_is_valid(top))
		return incstack__frames_refuse(frames);
	const struct cursor at = incstack__top_frame(&w, top);
	const struct incstack_frame first = frame_of(&at);
	state->interrupted = top->flags & INCSTACK_TOP_INTERRUPTED;
	if (!state->interrupted)
		incstack__rule_learn_wanted(state->runtime);
	return incstack__frames_start(frames, &first, top->sp, at.pc ? 1 : INCSTACK_EUNWIND);
}

/* Member by member, because `decoded` is large. */
static void reset(struct incstack_frames_state *state, runtime *rt, stack *s, struct bounds bounds)
{
	state->runtime = rt;
	state->stack = s;
	state->low = bounds.low;
	state->high = bounds.high;
	state->mapped_low = state->mapped_high = 0;
	state->interrupted = state->begun = state->lowered = state->count = state->next = 0;
}

int incstack_frames_begin(struct incstack_frames *frames, const struct incstack_frames_place *place,
			  const struct incstack_top *top)
{
	if (!frames || !place)
		return incstack__frames_refuse(frames);
	stack *s = place->stack;
	const struct bounds bounds = s ? s->given : (struct bounds){place->low, place->high};
	struct incstack_runtime *rt = s ? s->runtime : place->runtime;
	if (!rt || bounds.low > bounds.high)
		return incstack__frames_refuse(frames);
	reset(&frames->state, rt, s, bounds);
	return s ? s->kind->frames_begin(frames, top) : incstack__machine_frames_begin(frames, top);
}
