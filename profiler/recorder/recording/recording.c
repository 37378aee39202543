/* SPDX-License-Identifier: MIT
 *
 * The data of the recording and of each thread, notes for the report, and the step from one record
 * in use to several.
 */
#include "recorder/recording/recording.h"
#include "recorder/system/system.h"

struct incstack__recording incstack__recording;
const struct incstack__kind *incstack__kind;
INCSTACK__TLS struct incstack__record_local incstack__record_local;

void incstack__record_note(enum incstack__tracefile_note note)
{
	struct incstack__tracefile_slot *slots = incstack__recording.slots;
	const uint64_t bit = UINT64_C(1) << note;

	if (slots && !(__atomic_load_n(&slots[0].notes, __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(&slots[0].notes, bit, __ATOMIC_RELAXED);
}

void incstack__record_note_for_good(enum incstack__tracefile_note note)
{
	__atomic_fetch_or(&incstack__recording.why, UINT64_C(1) << note, __ATOMIC_RELAXED);
	incstack__record_note(note);
}

/* The release of the addition publishes `shared`: see struct incstack__recording. */
void incstack__record_share(void)
{
	struct incstack__recording *r = &incstack__recording;

	if (__atomic_load_n(&r->shared, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&r->shared, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&r->changes, 1, __ATOMIC_RELEASE);
}
