/* SPDX-License-Identifier: MIT
 *
 * Interposes the functions that switch to another context, and announces the switch before it
 * happens. At the end of a context's function libc switches by itself, but no frame of the context
 * is open then.
 */
#include <ucontext.h>

#include "stub.h"

INCSTACK__REAL(swapcontext)
INCSTACK__REAL(setcontext)

static void announce(const ucontext_t *to)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder)
		recorder->on_switch(to);
}

INCSTACK__INTERPOSED int swapcontext(ucontext_t *restrict from, const ucontext_t *restrict to)
{
	announce(to);
	return swapcontext_next()(from, to);
}

INCSTACK__INTERPOSED int setcontext(const ucontext_t *to)
{
	announce(to);
	return setcontext_next()(to);
}
