/* SPDX-License-Identifier: MIT
 *
 * A machine stack of unknown bounds. Each sample may be on another stack. A walk asks the kernel
 * what can be read, and nothing is remembered of a stack, so its mode is always full.
 */
#include "kind_machine.h"

/* Stacks have no order, but most often both stack pointers are on the same stack. */
static bool left_behind(const stack *s, uintptr_t operation, uintptr_t sp)
{
	(void)s;
	return operation < sp;
}

const struct incstack__stack_kind incstack__kind_anywhere = {
	.modes = 1u << INCSTACK_MODE_FULL,
	.mode = INCSTACK_MODE_FULL,
	.slow_reasons = SLOW_WALK,
	.left_behind = left_behind,
	INCSTACK__MACHINE_FUNCTIONS,
};
