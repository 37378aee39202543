/* SPDX-License-Identifier: MIT
 *
 * Forgets the unwind rules of unloaded code. Other code may be loaded in its place, and the dynamic linker
 * announces neither. So the adapter interposes dlclose, and __cxa_finalize, which the destructors of a module
 * call if libc unloads it by itself (iconv).
 *
 * From an announcement until the code is surely gone, every walk begins without rules. That is exact. A walk that
 * learns a rule of the old code has a frame there, so the code is not unloaded before the walk's end. A walk with
 * a frame of the new code begins after the announcement: it forgets the rule itself, or another walk has, after
 * the old code was gone.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "adapter.h"

/* Runs the functions that a module has registered for its end. No header declares it. */
void __cxa_finalize(void *module);

enum { MODULES = 64 };

static atomic_uint closing; /* threads inside of dlclose */

/* The modules whose destructors ran outside of dlclose. If there is no place for a module, every later walk
 * begins without rules. */
static struct {
	_Atomic uintptr_t address; /* in the module; 0: the place is free */
	const struct link_map *map;
} ending[MODULES];
static atomic_uint endings;
static atomic_flag freeing = ATOMIC_FLAG_INIT; /* a thread looks which places become free */

/* Whether the calling thread is inside of our dlclose. */
static __thread __attribute__((tls_model("initial-exec"))) int depth;

static const struct link_map *map_at(uintptr_t address)
{
	struct dl_find_object found;

	return _dl_find_object((void *)address, &found) ? NULL : found.dlfo_link_map;
}

/* ---- announcements ----------------------------------------------------------------------- */

static void announce(uintptr_t address)
{
	const struct link_map *map = map_at(address);

	atomic_fetch_add(&endings, 1);
	for (int i = 0; i < MODULES; i++) {
		uintptr_t none = 0;

		if (!atomic_compare_exchange_strong(&ending[i].address, &none, 1))
			continue;
		ending[i].map = map;
		atomic_store(&ending[i].address, address);
		return;
	}
}

__attribute__((visibility("default"))) void __cxa_finalize(void *module)
{
	static void (*_Atomic next)(void *);

	if (!next)
		next = (void (*)(void *))dlsym(RTLD_NEXT, "__cxa_finalize");
	if (module && !depth)
		announce((uintptr_t)module);
	if (next)
		next(module);
}

static struct incstack_runtime *_Atomic caching; /* the runtime; null: there was no walk yet */

static void forget_all(void)
{
	struct incstack_runtime *runtime = atomic_load(&caching);

	if (runtime)
		incstack_runtime_code_unloading(runtime, NULL, 0, UINTPTR_MAX);
}

__attribute__((visibility("default"))) int dlclose(void *handle)
{
	static int (*_Atomic next)(void *);
	int result;

	if (!next)
		next = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
	atomic_fetch_add(&closing, 1);
	depth++;
	result = next ? next(handle) : -1;
	depth--;
	forget_all();
	atomic_fetch_sub(&closing, 1);
	return result;
}

bool incstack__jemalloc_hears_unloads(void)
{
	const void *first = dlsym(RTLD_DEFAULT, "dlclose"), *next = dlsym(RTLD_NEXT, "dlclose");

	return next && first != next;
}

/* ---- before each walk --------------------------------------------------------------------- */

static void find_gone(bool *gone)
{
	for (int i = 0; i < MODULES; i++) {
		const uintptr_t address = atomic_load(&ending[i].address);

		gone[i] = address > 1 && map_at(address) != ending[i].map;
	}
}

/* A module that was gone before all rules were forgotten has none any more. */
static void free_places(const bool *gone)
{
	for (int i = 0; i < MODULES; i++) {
		if (!gone[i])
			continue;
		atomic_store(&ending[i].address, 0);
		atomic_fetch_sub(&endings, 1);
	}
}

void incstack__jemalloc_forget_unloaded(struct incstack_runtime *runtime)
{
	bool gone[MODULES];

	atomic_store_explicit(&caching, runtime, memory_order_relaxed);
	if (!atomic_load(&closing) && !atomic_load(&endings))
		return;
	if (atomic_flag_test_and_set(&freeing)) {
		forget_all();
		return;
	}
	find_gone(gone);
	forget_all();
	free_places(gone);
	atomic_flag_clear(&freeing);
}
