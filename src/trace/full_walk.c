/* SPDX-License-Identifier: MIT
 *
 * A full walk, for comparison with a trace: from the top to the base, frame by frame, by the
 * unwind rules. Of the state that samples leave, it uses only the thunks in return slots, which
 * it sees through. It changes nothing that samples use.
 */
#include "operation.h"
#include "shared.h"
#include "top.h"

static struct incstack_frame frame_of(const struct cursor *at)
{
	return (struct incstack_frame){at->pc, at->sp, at->fp, at->exact ? INCSTACK_FRAME_EXACT : 0,
				       0};
}

static int walk(stack *s, const struct incstack_top *top, struct incstack_frame *frames, int max)
{
	struct mapped mapped = {0, 0};
	const struct stepper w = {s->runtime, s->given.low, s->given.high, &mapped, ASK_DIRECTLY};
	struct cursor at = incstack__top_frame(&w, top);
	enum step step = at.pc ? STEP_FRAME : STEP_UNKNOWN;
	unsigned guesses = 0;
	int count = 0;
	while (step == STEP_FRAME && count < max) {
		frames[count++] = frame_of(&at);
		const packed_rule rule = incstack__rule_of(&w, at.pc, at.exact);
		guesses += rule_by_pointer(rule);
		step = guesses > INCSTACK__POINTER_STEPS ? STEP_UNKNOWN
							 : incstack__caller(&w, &at, rule);
	}
	return count;
}

/* Called by the owner of a machine stack outside signal handlers. Writes the frames, top first. Returns how many
 * there are, or a negative INCSTACK_E* code. */
int incstack__full_walk(stack *s, const struct incstack_top *top, struct incstack_frame *frames,
			int max)
{
	int result = enter(s);
	if (result)
		return result;
	result = walk(s, top, frames, max);
	leave(s);
	return result;
}
