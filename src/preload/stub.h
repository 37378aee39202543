/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the preloaded stub: the recorder's table and the real
 * functions behind the interposed ones.
 */
#ifndef INCSTACK_STUB_H
#define INCSTACK_STUB_H

#include <link.h>

#include "../elf_symbol.h"
#include "preload.h"

#define INCSTACK__INTERPOSED __attribute__((visibility("default")))

/* Null before the recorder has started and where there is none. */
extern const struct incstack__recorder *incstack__stub_recorder;

static inline const struct incstack__recorder *incstack__stub_recorder_get(void)
{
	return __atomic_load_n(&incstack__stub_recorder, __ATOMIC_ACQUIRE);
}

/* The real dlsym, by which this object finds what is behind it. */
void *incstack__stub_dlsym(void *handle, const char *name);
/* The loaded object that contains an address, or null. */
const struct link_map *incstack__stub_object(uintptr_t address);
/* The real _dl_find_object, by which that is found from then on; 0: there is none. */
void incstack__stub_object_finder(uintptr_t function);
/* The data of the dynamic linker as they are now. */
const struct incstack__linker_view *incstack__stub_view_linker(void);
/* Called in assembly: see stub_entries.c. */
uintptr_t incstack__stub_entered(uintptr_t *slot, unsigned number);

/* The next definition of a function; null if there is none. */
void *incstack__stub_find(void **cache, const char *name);
/* Ends the process then: the target could not have run without it either. */
void *incstack__stub_next(void **cache, const char *name);

/* All are found at the start: a search inside free, which dlsym calls for what its last
 * error left, would make dlsym free that twice. */
#define INCSTACK__REAL(name) \
	static void *name##_cache; \
	__attribute__((constructor(101))) static void name##_find(void) \
	{ \
		incstack__stub_find(&name##_cache, #name); \
	} \
	static inline __typeof__(&(name)) name##_next(void) \
	{ \
		void *next = __atomic_load_n(&name##_cache, __ATOMIC_RELAXED); \
\
		if (__builtin_expect(next == NULL, 0)) \
			next = incstack__stub_next(&name##_cache, #name); \
		return (__typeof__(&(name)))next; \
	}

#endif
