/* SPDX-License-Identifier: MIT
 *
 * The code that a signal has interrupted: whether the rules describe it, and which frames a held
 * thread has left since its last sample.
 */
#ifndef INCSTACK_RECORDER_INTERRUPTED_H
#define INCSTACK_RECORDER_INTERRUPTED_H

#include "native/native.h"
#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "recorder/threads/threads.h"

enum incstack__native_described
incstack__interrupted_is_described(const struct incstack__record *record,
				   const struct incstack_top *top);

/* Whether the rules describe the code at which a held thread was interrupted. If not, the thread
 * should be held again a little later. */
bool incstack__interrupted_is_settleable(const struct incstack__record *record,
					 const struct incstack_top *top);

/* Forgets those known frames of a record's stack that are gone. The record's thread is held and was
 * interrupted at `top`. The caller has taken over the stack. */
void incstack__interrupted_settle(struct incstack__record *record, const struct incstack_top *top);

#endif
