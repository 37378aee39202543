/* SPDX-License-Identifier: MIT
 *
 * Finds the real functions of the entries in entries.S, and removes thunks before they run,
 * because the functions must find no thunk where they look for return addresses. dlopen and dlsym
 * search on behalf of the object that called them. They identify it by the return address, which
 * may be a thunk after a tail call. Walkers would report the thunks.
 */
#include <stdatomic.h>
#include <errno.h>

#include "stub.h"

static int nothing(void)
{
	return 0;
}

static int failed(void)
{
	return -1;
}

static int end_of_stack(void)
{
	return 5; /* _URC_END_OF_STACK */
}

static const struct entry {
	const char *name;
	int (*otherwise)(void); /* for walkers: used if there is no such function */
	bool by_caller;         /* it takes the registers for a walk of its caller */
} entries[] = {
	{.name = "dlopen"},
	{.name = "dlmopen"},
	{.name = "dlsym"},
	{.name = "dlvsym"},
	{.name = "backtrace", .otherwise = nothing},
	{.name = "_Unwind_Backtrace", .otherwise = end_of_stack},
	{.name = "unw_backtrace", .otherwise = nothing},
	{.name = "_Ux86_64_getcontext", .otherwise = failed, .by_caller = 1},
	{.name = "unw_getcontext", .otherwise = failed, .by_caller = 1},
};
enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

static _Atomic uintptr_t real[ENTRIES];

__attribute__((constructor(101))) static void find_all(void)
{
	for (unsigned i = 0; i < ENTRIES; i++)
		if (real[i] == 0)
			real[i] = incstack__stub_next_function(entries[i].name);
	incstack__stub_object_finder(incstack__stub_next_function("_dl_find_object"));
}

/* Searches the libraries of the calling object. An unwinder's context may be passed only to the
 * functions of the same unwinder. So if the global scope has none, the caller's own unwinder must
 * be used. */
static uintptr_t find_for(uintptr_t caller, const char *name)
{
	const uintptr_t found = incstack__stub_function_for(incstack__stub_object(caller), name, 1);

	return found != 0 ? found : incstack__stub_function_in("libgcc_s.so.1", name);
}

static uintptr_t find(unsigned number, uintptr_t caller)
{
	const struct entry *entry = &entries[number];
	uintptr_t found = atomic_load_explicit(&real[number], memory_order_relaxed);

	if (__builtin_expect(found != 0, 1))
		return found;
	if (entry->otherwise) {
		found = find_for(caller, entry->name);
		return found != 0 ? found : (uintptr_t)entry->otherwise;
	}
	found = incstack__stub_next_function(
		entry->name); /* the call came before the constructor */
	if (found == 0)
		__builtin_trap(); /* the target could not have run without it either */
	atomic_store_explicit(&real[number], found, memory_order_relaxed);
	return found;
}

/* Called by the entries, which jump to the address that it returns. */
uintptr_t incstack__stub_entered(uintptr_t *slot, unsigned number)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();
	const int error = errno;
	uintptr_t found;

	if (recorder && entries[number].otherwise)
		recorder->on_walk(slot, entries[number].by_caller);
	if (recorder)
		recorder->on_shown(slot);
	found = find(number, *slot);
	errno = error;
	return found;
}
