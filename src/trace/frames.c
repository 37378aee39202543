/* SPDX-License-Identifier: MIT
 *
 * The frame iterator: a walk that gives out one frame at a time. It uses nothing of the state that
 * samples leave but the thunks in return slots, which it sees through, and it changes nothing.
 */
#include <incstack/frames.h>

#include "mapped.h"
#include "unwind.h"

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

static bool by_embedder(const struct incstack_frames_state *state)
{
	return state->stack && state->stack->by_embedder;
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

/* Moves to the next frame of a machine stack. */
static int move(struct incstack_frames *frames)
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

static int move_by_embedder(struct incstack_frames *frames)
{
	const runtime *rt = frames->state.runtime;
	struct incstack_frame caller = frames->frame;
	if (!frames->state.begun)
		return 1;
	caller.flags = 0;
	int more = rt->embedder.caller(rt->context, frames->state.stack->identity, &caller);
	if (more <= 0)
		return more;
	frames->frame = caller;
	frames->frame.flags &= INCSTACK_FRAME_EXACT;
	return 1;
}

/* ---- what a frame is ------------------------------------------------------------------- */

static int decode(struct incstack_frames_state *state, const struct incstack_frame *frame)
{
	const struct incstack_embedder *e = &state->runtime->embedder;
	int (*ask)(void *, const struct incstack_frame *, struct incstack_virtual_frame *, int) =
		state->interrupted ? e->decode_in_handler : e->decode;
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
	frames->kind = state->runtime->embedder.decode ? INCSTACK_KIND_UNKNOWN : INCSTACK_KIND_C;
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
	state->result = by_embedder(state) ? move_by_embedder(frames) : move(frames);
	state->begun = true;
	return state->result > 0 ? describe(frames) : state->result;
}

/* ---- the beginning ------------------------------------------------------------------------ */

/* Whether an operation on the stack is in progress, by whatever thread. It is not if this thread
 * has left it by a jump to the top or beyond. */
static bool is_busy(const struct incstack_frames_state *state)
{
	const stack *s = state->stack;
	if (!s || !s->busy)
		return false;
	return s->owner != thread_self() || !inside(s, s->busy) || s->busy >= state->sp;
}

int incstack_frames_rewind(struct incstack_frames *frames)
{
	if (!frames || !frames->state.runtime)
		return INCSTACK_EINVAL;
	struct incstack_frames_state *state = &frames->state;
	state->result = is_busy(state) ? INCSTACK_EBUSY : state->first;
	state->mapped_low = state->mapped_high = 0;
	state->begun = state->lowered = state->count = state->next = 0;
	frames->frame = state->start;
	return state->result < 0 ? state->result : 0;
}

static bool is_valid(const struct incstack_top *top)
{
	return top && top->pc && top->sp % sizeof(uintptr_t) == 0 &&
	       !(top->flags & INCSTACK_TOP_DECODE_NOW);
}

static void use(struct incstack_frames *frames, runtime *rt, stack *s, uintptr_t low,
		uintptr_t high)
{
	frames->state.runtime = rt;
	frames->state.stack = s;
	frames->state.low = low;
	frames->state.high = high;
}

/* Each further call for the iterator is refused, too. */
static int refuse(struct incstack_frames *frames)
{
	if (!frames)
		return INCSTACK_EINVAL;
	use(frames, NULL, NULL, 0, 0);
	frames->state.count = frames->state.next = 0;
	return frames->state.result = INCSTACK_EINVAL;
}

/* Sets the top of a machine stack. If a return is being served there, the frame that runs next is
 * the top. */
static int begin(struct incstack_frames *frames, const struct incstack_top *top)
{
	const uint32_t exact = INCSTACK_TOP_EXACT | INCSTACK_TOP_INTERRUPTED;
	struct cursor at = {
		.pc = top->pc, .sp = top->sp, .fp = top->fp, .exact = top->flags & exact};
	frames->state.interrupted = top->flags & INCSTACK_TOP_INTERRUPTED;
	if (at.exact)
		incstack__pass_trampoline(&at);
	else
		at.pc = incstack_slot_read(&top->pc);
	frames->state.sp = top->sp;
	frames->state.start = frame_of(&at);
	frames->state.first = at.pc ? 1 : INCSTACK_EUNWIND;
	if (!frames->state.interrupted)
		incstack__rule_learn_wanted(frames->state.runtime);
	return incstack_frames_rewind(frames);
}

/* Sets the top of a stack that the embedder walks. */
static int begin_by_embedder(struct incstack_frames *frames, const struct incstack_top *top)
{
	const runtime *rt = frames->state.runtime;
	struct incstack_frame f = {0};
	int more = 1;
	if (top ? top->flags & INCSTACK_TOP_INTERRUPTED || !top->sp : !rt->embedder.youngest)
		return refuse(frames);
	if (top)
		f = (struct incstack_frame){
			top->pc, top->sp, top->fp,
			top->flags & INCSTACK_TOP_EXACT ? INCSTACK_FRAME_EXACT : 0, 0};
	else
		more = rt->embedder.youngest(rt->context, frames->state.stack->identity, &f);
	f.flags &= INCSTACK_FRAME_EXACT;
	frames->state.interrupted = 0;
	frames->state.sp = f.sp;
	frames->state.start = f;
	frames->state.first = more < 1 ? more : 1;
	return incstack_frames_rewind(frames);
}

int incstack_frames_begin(struct incstack_frames *frames, struct incstack_runtime *rt,
			  uintptr_t low, uintptr_t high, const struct incstack_top *top)
{
	if (!frames || !rt || low > high || !is_valid(top))
		return refuse(frames);
	use(frames, rt, NULL, low, high);
	return begin(frames, top);
}

int incstack_frames_begin_stack(struct incstack_frames *frames, struct incstack_stack *s,
				const struct incstack_top *top)
{
	if (!frames || !s || (!s->by_embedder && !is_valid(top)))
		return refuse(frames);
	use(frames, s->runtime, s, s->anywhere ? 0 : s->low, s->anywhere ? 0 : s->high);
	return s->by_embedder ? begin_by_embedder(frames, top) : begin(frames, top);
}
