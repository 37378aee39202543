/* SPDX-License-Identifier: MIT
 *
 * The mode of a stack. It may change while there are barriers and open traces. Then the traces are
 * completed as far as there is memory, and the barriers are lifted.
 */
#include "barrier.h"
#include "distance.h"
#include "mode.h"
#include "operation.h"
#include "retrieve.h"
#include "shared.h"
#include "validate.h"

void incstack__mode_use(stack *s, uint32_t mode)
{
	s->mode = mode;
	incstack__validate_open(s);
	incstack__distance_renew(s);
	set_newest(s, NULL);
}

/* Changes the mode within an operation. `frame` is the frame of the public function that the
 * owner has called. */
void incstack__mode_change(stack *s, uint32_t mode, const uintptr_t *frame)
{
	bool certain = s->kind->remove_popped(s, frame);
	if (certain)
		incstack__complete(s, false);
	incstack__lift_all(s, certain);
	if (mode == INCSTACK_MODE_PATCH &&
	    (incstack__shadow_stack_on() || stacks_are_copied(s->runtime)))
		mode = INCSTACK_MODE_VALIDATE;
	incstack__validate_hide_rules(s);
	incstack__mode_use(s, mode);
}

int incstack__stack_interrupted_at(stack *s, const struct incstack_top *top)
{
	int error = enter(s);
	if (error)
		return error;
	if (!s->kind->remove_popped_at(s, top)) {
		incstack__lift_all(s, false);
		set_newest(s, NULL);
	}
	leave(s);
	return 0;
}

/* Changes the mode if stacks are copied. Called within an operation of the owner that is neither
 * a sample nor a return. `frame` is the frame of the public function that the owner called. */
void incstack__copied_check(stack *s, const uintptr_t *frame)
{
	if (s->mode == INCSTACK_MODE_PATCH && stacks_are_copied(s->runtime))
		incstack__mode_change(s, INCSTACK_MODE_VALIDATE, frame);
}
