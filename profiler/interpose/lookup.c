/* SPDX-License-Identifier: MIT
 *
 * Interposes the functions with which unwinders look up loaded code before they look at a frame. So
 * an unwinder that is linked statically into the program or a library is noticed before it meets a
 * thunk. Also interposes dladdr, to which programs pass their return addresses.
 */
#include <stdatomic.h>
#include <dlfcn.h>
#include <link.h>

#include "stub.h"

INCSTACK__REAL(dladdr)
INCSTACK__REAL(dl_iterate_phdr)

INCSTACK__INTERPOSED int dladdr(const void *address, Dl_info *info)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder)
		address = recorder->real_address(address);
	return dladdr_next()(address, info);
}

INCSTACK__INTERPOSED int
dl_iterate_phdr(int (*callback)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder)
		recorder->on_lookup((uintptr_t)__builtin_return_address(0), 0);
	return dl_iterate_phdr_next()(callback, data);
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* glibc 2.35 */

static __typeof__(&_dl_find_object) real_find_object(void)
{
	static void *_Atomic cache;
	void *real = atomic_load_explicit(&cache, memory_order_relaxed);

	if (__builtin_expect(!real, 0))
		real = incstack__stub_find(&cache, "_dl_find_object");
	return (__typeof__(&_dl_find_object))real;
}

INCSTACK__INTERPOSED int _dl_find_object(void *address, struct dl_find_object *result)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();
	const __typeof__(&_dl_find_object) real = real_find_object();

	if (recorder)
		recorder->on_lookup((uintptr_t)__builtin_return_address(0), 1);
	return real ? real(address, result) : -1;
}

#endif
