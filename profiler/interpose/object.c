/* SPDX-License-Identifier: MIT
 *
 * The recorder that the stubs call, and the loaded object of an address.
 */
#include <stdatomic.h>
#include <dlfcn.h>

#include "stub.h"

const struct incstack__recorder *_Atomic incstack__stub_recorder;

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* glibc 2.35 */

static _Atomic(__typeof__(&_dl_find_object)) find_object;

void incstack__stub_object_finder(uintptr_t function)
{
	atomic_store_explicit(&find_object, (__typeof__(&_dl_find_object))function,
			      memory_order_release);
}

/* Finds an object without dladdr, which takes a lock of the dynamic linker. A program that walks
 * its stack inside a callback of dl_iterate_phdr, as libunwind does, holds another lock of the
 * linker. It would deadlock with a thread that takes both locks in the other order. */
static bool finds_without_lock(uintptr_t address, const struct link_map **map)
{
	const __typeof__(&_dl_find_object) find =
		atomic_load_explicit(&find_object, memory_order_acquire);
	struct dl_find_object found;

	if (!find)
		return false;
	*map = find((void *)address, &found) == 0 ? found.dlfo_link_map : NULL;
	return true;
}

#else

void incstack__stub_object_finder(uintptr_t function)
{
	(void)function;
}

static bool finds_without_lock(uintptr_t address, const struct link_map **map)
{
	(void)address;
	(void)map;
	return false;
}

#endif

const struct link_map *incstack__stub_object(uintptr_t address)
{
	const struct link_map *quickly;
	struct link_map *map = NULL;
	Dl_info info;

	if (finds_without_lock(address, &quickly))
		return quickly;
	if (dladdr1((const void *)address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0)
		return NULL;
	return map;
}
