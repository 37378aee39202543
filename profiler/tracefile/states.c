/* SPDX-License-Identifier: MIT
 *
 * The time of each context in each state; see states.h.
 */
#include "states.h"

#include <stdlib.h>
#include <string.h>

#include <incstack/incstack.h>

const char *incstack__state_name(uint32_t state)
{
	static const char *const names[] = {
		[INCSTACK__STATE_RUNNING] = "running",  [INCSTACK__STATE_RUNNABLE] = "runnable",
		[INCSTACK__STATE_LOCK] = "lock",        [INCSTACK__STATE_IO] = "I/O",
		[INCSTACK__STATE_SLEEP] = "sleep",      [INCSTACK__STATE_FAULT] = "page fault",
		[INCSTACK__STATE_OTHER] = "other wait", [INCSTACK__STATE_UNKNOWN] = "unknown",
	};

	return state < INCSTACK__STATES ? names[state] : NULL;
}

static int make_room(struct incstack__times *times, uint32_t context)
{
	const uint32_t room = context < UINT32_MAX / 2 ? 2 * context + 64 : UINT32_MAX;
	uint64_t(*more)[INCSTACK__STATES];

	if (context < times->room)
		return 0;
	more = realloc(times->ns, (size_t)room * sizeof(*more));
	if (!more)
		return INCSTACK_ENOMEM;
	memset(more + times->room, 0, (size_t)(room - times->room) * sizeof(*more));
	times->ns = more;
	times->room = room;
	return 0;
}

int incstack__times_add(struct incstack__times *times, uint32_t context, enum incstack__state state,
			uint64_t ns)
{
	if (make_room(times, context) != 0)
		return INCSTACK_ENOMEM;
	times->ns[context][state] += ns;
	return 0;
}

const uint64_t *incstack__times_of(const struct incstack__times *times, uint32_t context)
{
	static const uint64_t none[INCSTACK__STATES];

	return context < times->room ? times->ns[context] : none;
}

void incstack__times_free(struct incstack__times *times)
{
	free(times->ns);
	*times = (struct incstack__times){0};
}
