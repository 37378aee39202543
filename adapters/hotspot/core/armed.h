/* SPDX-License-Identifier: MIT
 *
 * The armed frames of one stack: those with a return barrier. A frame is named by the stack
 * pointer that its callee returns with, so a smaller name is a younger frame. The virtual
 * machine intercepts only the next return into the youngest armed frame; this list knows the
 * others.
 */
#ifndef INCSTACK_HOTSPOT_ARMED_H
#define INCSTACK_HOTSPOT_ARMED_H

#include <stddef.h>
#include <stdint.h>

#include <incstack/version.h>

INCSTACK_BEGIN_C

struct incstack__armed {
	uintptr_t *names; /* the youngest last */
	uint32_t count;
	uint32_t room;
};

/* Makes room for `more` names. Returns 0, or -1 if there is no memory. */
int incstack__armed_reserve(struct incstack__armed *armed, uint32_t more);

/* Adds a name. Returns 0, or -1 if there is no room or the frame is armed already. */
int incstack__armed_add(struct incstack__armed *armed, uintptr_t name);

/* Removes a name. Returns 1, or 0 if the frame was not armed. */
int incstack__armed_remove(struct incstack__armed *armed, uintptr_t name);

/* Whether the frame is armed: 1 or 0. */
int incstack__armed_has(const struct incstack__armed *armed, uintptr_t name);

/* Removes all names below `limit` and returns their number. *oldest is the oldest of them: the
 * frame that runs now or next. */
uint32_t incstack__armed_take(struct incstack__armed *armed, uintptr_t limit, uintptr_t *oldest);

/* Returns the name of the youngest armed frame, or 0. */
static inline uintptr_t incstack__armed_youngest(const struct incstack__armed *armed)
{
	return armed->count ? armed->names[armed->count - 1] : 0;
}

void incstack__armed_free(struct incstack__armed *armed);

INCSTACK_END_C

#endif
