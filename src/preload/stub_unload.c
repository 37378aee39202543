/* SPDX-License-Identifier: MIT
 *
 * The interposed calls that take code away. Where libc unloads by itself, its dlclose is
 * not ours, but the module's destructors call __cxa_finalize. dlopen is left alone: it
 * looks up paths on behalf of its caller, which an interposer would become; new code is
 * noticed when it shows up.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "stub.h"

/* Declared by no header: runs what a module has registered for its end. */
void __cxa_finalize(void *module);

INCSTACK__REAL(dlclose)
INCSTACK__REAL(__cxa_finalize)

/* Whether the calling thread is inside a dlclose that was announced. */
static __thread int closing;

INCSTACK__INTERPOSED int dlclose(void *handle)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();
	int result;

	if (recorder != NULL && closing++ == 0)
		recorder->on_unload(INCSTACK__UNLOAD_BEGINS, NULL);
	result = dlclose_next()(handle);
	if (recorder != NULL && --closing == 0)
		recorder->on_unload(INCSTACK__UNLOAD_ENDED, NULL);
	return result;
}

/* Also called for every module when the process ends. */
INCSTACK__INTERPOSED void __cxa_finalize(void *module)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder != NULL && module != NULL && closing == 0)
		recorder->on_unload(INCSTACK__UNLOAD_ANNOUNCED, module);
	__cxa_finalize_next()(module);
}
