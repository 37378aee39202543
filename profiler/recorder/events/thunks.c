/* SPDX-License-Identifier: MIT
 *
 * Makes thunks when few are left, but not in an event that libgcc may have caused. libgcc allocates
 * while it holds the lock that registering thunks takes, so the thread would wait for itself (D6).
 */
#include <dlfcn.h>

#include "recorder/events/events.h"

extern const void *_Unwind_Find_FDE(const void *code, void *bases[3]) __attribute__((weak));

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* _dl_find_object: glibc 2.35 */

static const struct link_map *object_of(uintptr_t address)
{
	struct dl_find_object object;

	return _dl_find_object((void *)address, &object) == 0 ? object.dlfo_link_map : NULL;
}

static bool may_be_unwinder(uintptr_t pc)
{
	return object_of(pc - 1) == object_of((uintptr_t)_Unwind_Find_FDE);
}

#else

static bool may_be_unwinder(uintptr_t pc)
{
	(void)pc;
	return true;
}

#endif

void incstack__record_make_thunks(struct incstack__record *record, struct incstack__caller caller)
{
	struct incstack__protection before;

	if (!_Unwind_Find_FDE || may_be_unwinder(incstack_slot_read(caller.slot)))
		return;
	incstack__record_protect(&before);
	incstack__lock_may_wait();
	incstack__pools_add(record->stack);
	incstack__record_unprotect(&before);
}
