/* SPDX-License-Identifier: MIT
 *
 * The code that a signal has interrupted: whether the rules describe it, and which frames a held
 * thread has left since its last sample.
 */
#ifndef INCSTACK_RECORDER_INTERRUPTED_H
#define INCSTACK_RECORDER_INTERRUPTED_H

#include "native/native.h"
#include "recorder.h"

enum incstack__native_described
incstack__interrupted_is_described(const struct incstack__record *record,
				   const struct incstack_top *top);

/* Removes the frames that are gone from what is known of the stack of a held thread. The caller has
 * taken over the stack. */
void incstack__interrupted_settle(struct incstack__record *record);

#endif
