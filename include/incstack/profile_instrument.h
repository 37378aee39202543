/* SPDX-License-Identifier: MIT
 *
 * Profiles of what a meter of instrument.h has measured. Conventions as in profile.h.
 */
#ifndef INCSTACK_PROFILE_INSTRUMENT_H
#define INCSTACK_PROFILE_INSTRUMENT_H

#include <incstack/instrument.h>
#include <incstack/profile.h>

INCSTACK_BEGIN_C

/* Describes the method of a context in *frame, which is zero before the call except for its size and its
 * function. Returns 1; or 0 to leave the context out, whose callees then are those of its caller, as is its
 * time. The frame may get a name at once, or later from incstack_profile_name_frames. */
typedef int incstack_profile_method_fn(void *context, const struct incstack_meter_context *at,
				       struct incstack_profile_frame *frame);

/* Makes a profile of a snapshot, with the kinds "time" (calibrated, without callees), "calls",
 * "waiting" and "measured" (not calibrated); all but the calls are in nanoseconds. In a snapshot that keeps threads
 * apart, each thread has a node "thread ID" below the root. `describe` may be null.
 * Errors: EINVAL, also for a frame that incstack_profile_add_node refuses; ENOMEM, EFORMAT; ERANGE: a
 * total beyond INT64_MAX.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_profile_create_from_meter(const struct incstack_meter_snapshot *snapshot,
						    incstack_profile_method_fn *describe,
						    void *context,
						    struct incstack_profile **profile);

INCSTACK_END_C

#endif
