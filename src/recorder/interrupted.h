/* SPDX-License-Identifier: MIT
 *
 * Frames that a held thread has left since its last sample.
 */
#ifndef INCSTACK_RECORDER_INTERRUPTED_H
#define INCSTACK_RECORDER_INTERRUPTED_H

#include "recorder.h"

/* Removes the frames that are gone from what is known of the stack of a held thread. The caller has
 * taken over the stack. */
void incstack__interrupted_settle(struct incstack__record *record);

#endif
