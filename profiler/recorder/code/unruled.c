/* SPDX-License-Identifier: MIT
 *
 * Code that no unwind table describes, such as that of V8. Compilers at run time keep a frame pointer, so that
 * they can walk their own frames. What the register holds in other code is unknown. So the core follows it only
 * inside of the thread's own stack, and where it leads must be executable and stand behind a call. Nothing of
 * what may be unmapped meanwhile is read directly.
 */
#include <stddef.h>

#include "native/frame_pointer.h"
#include "recorder/code/code.h"
#include "recorder/code/executable.h"
#include "unruled.h"

bool incstack__record_returns_into(void *context, uintptr_t pc)
{
	struct incstack__executable *known = incstack__record_local.executable;

	(void)context;
	return known && incstack__native_copied_follows_call(pc) &&
	       incstack__executable_has(known, pc - 1);
}

int incstack__record_pointer_rule(uintptr_t address, struct incstack_rule *rule)
{
	const uintptr_t interrupted = incstack__record_local.interrupted;

	if (!incstack__kind->samples_in_handlers)
		return INCSTACK_EUNWIND;
	if (interrupted == 0 || address != interrupted) {
		if (!incstack__record_returns_into(NULL, address + 1))
			return INCSTACK_EUNWIND;
		*rule = incstack__native_pointer_rule();
		return 0;
	}
	*rule = incstack__native_pointer_rule_here(address, incstack__record_local.interrupted_sp);
	return 0;
}
