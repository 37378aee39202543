/* SPDX-License-Identifier: MIT
 *
 * Chooses what makes the ticks of a CPU profile, before the recording begins.
 */
#include "recorder/cpu/ticks.h"
#include "recorder/recording/recording.h"

const struct incstack__ticker *incstack__ticker = &incstack__ticker_timers;

static bool lacks_events; /* although they were wanted */
static enum incstack__tracefile_note reason;

void incstack__ticker_choose(void)
{
	const struct incstack__recording *r = &incstack__recording;

	if (r->ticks == INCSTACK__TICKS_OF_TIMERS || r->elapsed)
		return;
	lacks_events = !incstack__events_permitted(r->ticks == INCSTACK__TICKS_OF_EVENTS, &reason);
	if (!lacks_events)
		incstack__ticker = &incstack__ticker_events;
}

void incstack__ticker_begin(void)
{
	if (lacks_events)
		incstack__record_note(reason);
	incstack__ticker->begin();
}
