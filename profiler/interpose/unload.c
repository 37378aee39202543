/* SPDX-License-Identifier: MIT
 *
 * Interposes the functions that unload code. If libc unloads a module itself, it does not call our
 * dlclose, but the module's destructors call __cxa_finalize. dlopen needs no announcement, because
 * new code is noticed when it is met. An ordinary function must not interpose dlopen anyway, which
 * looks up paths on behalf of its caller (entries.S).
 */
#include <dlfcn.h>

#include "stub.h"

/* Runs the functions that a module has registered for its end. No header declares it. */
void __cxa_finalize(void *module);

INCSTACK__REAL(dlclose)
INCSTACK__REAL(__cxa_finalize)

/* Whether the calling thread is inside a dlclose that was announced. */
static __thread int closing;

INCSTACK__INTERPOSED int dlclose(void *handle)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();
	int result;

	if (recorder && closing++ == 0)
		recorder->on_unload(INCSTACK__UNLOAD_BEGINS, NULL);
	result = dlclose_next()(handle);
	if (recorder && --closing == 0)
		recorder->on_unload(INCSTACK__UNLOAD_ENDED, NULL);
	return result;
}

/* Also called for every module when the process ends. */
INCSTACK__INTERPOSED void __cxa_finalize(void *module)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder && module && closing == 0)
		recorder->on_unload(INCSTACK__UNLOAD_ANNOUNCED, module);
	__cxa_finalize_next()(module);
}
