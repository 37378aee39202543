/* SPDX-License-Identifier: MIT
 *
 * The code that a signal has interrupted: its registers, and whether the rules describe it.
 */
#ifndef INCSTACK_RECORDER_INTERRUPTED_H
#define INCSTACK_RECORDER_INTERRUPTED_H

#include "recorder.h"

/* The frame that a signal has interrupted, from the context that its handler got. */
struct incstack_top incstack__interrupted_top(const void *ucontext);
/* Removes the frames that are gone from what is known of the stack of a held thread. The caller has
 * taken over the stack. */
void incstack__interrupted_settle(struct incstack__record *record);

#endif
