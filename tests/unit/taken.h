/* SPDX-License-Identifier: MIT
 *
 * How a trace was taken, as the flags of its top tell (docs/signals.md).
 */
#ifndef TAKEN_H
#define TAKEN_H

#include <incstack/incstack.h>

enum taken { TAKEN_DIRECTLY, TAKEN_IN_HANDLER, TAKEN_FROM_QUEUE, TAKEN_BIASED };

static inline enum taken trace_taken(const struct incstack_trace *t)
{
	const uint32_t interrupted = t->top->flags & INCSTACK_OBJECT_INTERRUPTED;
	if (t->top->flags & INCSTACK_OBJECT_LATE)
		return interrupted ? TAKEN_FROM_QUEUE : TAKEN_BIASED;
	return interrupted ? TAKEN_IN_HANDLER : TAKEN_DIRECTLY;
}

#endif
