/* SPDX-License-Identifier: MIT
 *
 * The data of the recording and of each thread, notes for the report, and the step from one record
 * in use to several.
 */
#include <stdatomic.h>

#include "recorder/recording/recording.h"
#include "recorder/system/system.h"

struct incstack__recording incstack__recording;
const struct incstack__kind *incstack__kind;
INCSTACK__TLS struct incstack__record_local incstack__record_local;

void incstack__record_note(enum incstack__tracefile_note note)
{
	struct incstack__tracefile_slot *slots = incstack__recording.slots;
	const uint64_t bit = UINT64_C(1) << note;

	if (slots && !(atomic_load_explicit(&slots[0].notes, memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(&slots[0].notes, bit, memory_order_relaxed);
}

void incstack__record_note_for_good(enum incstack__tracefile_note note)
{
	atomic_fetch_or_explicit(&incstack__recording.why, UINT64_C(1) << note,
				 memory_order_relaxed);
	incstack__record_note(note);
}

/* The release of the addition publishes `shared`: see struct incstack__recording. */
void incstack__record_share(void)
{
	struct incstack__recording *r = &incstack__recording;

	if (atomic_load_explicit(&r->shared, memory_order_relaxed))
		return;
	atomic_store_explicit(&r->shared, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->changes, 1, memory_order_release);
}
