/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the preloaded stub: the recorder's table and the real
 * functions behind the interposed ones.
 */
#ifndef INCSTACK_STUB_H
#define INCSTACK_STUB_H

#include <stdatomic.h>
#include <link.h>

#include "elf/symbols.h"
#include "preload.h"

/* Some programs call these functions with a stack that is 8 bytes off, which libc bears. Compiled C
 * code does not bear it, so each function aligns its stack, and every function that it calls has an
 * aligned stack. With -maccumulate-outgoing-args this takes one instruction after the frame was
 * made. */
#define INCSTACK__ALIGNED __attribute__((force_align_arg_pointer))
#define INCSTACK__INTERPOSED __attribute__((visibility("default"))) INCSTACK__ALIGNED

/* Null before the recorder has started, or if there is none. The acquire below pairs with the
 * release in stub_load (start.c). */
extern const struct incstack__recorder *_Atomic incstack__stub_recorder;

static inline const struct incstack__recorder *incstack__stub_recorder_get(void)
{
	return atomic_load_explicit(&incstack__stub_recorder, memory_order_acquire);
}

/* Returns the loaded object that contains an address, or null. */
const struct link_map *incstack__stub_object(uintptr_t address);
/* Sets the real _dl_find_object, which incstack__stub_object uses from then on. 0: there is
 * none. */
void incstack__stub_object_finder(uintptr_t function);
/* Copies the data of the dynamic linker as they are now. */
const struct incstack__linker_view *incstack__stub_view_linker(void);
/* Called if the recorder could not be loaded. */
void incstack__stub_unloadable(const char *configuration);
/* Called by assembly code: see entries.c. */
uintptr_t incstack__stub_entered(uintptr_t *slot, unsigned number);

/* search.c: the next definition in the objects after this object, which are the global scope before
 * the program runs; 0 or null: there is none. incstack__stub_symbol also gives the object that has
 * it. */
uintptr_t incstack__stub_next_function(const char *name);
const ElfW(Sym) * incstack__stub_symbol(const char *name, const struct link_map **of);
/* The function of the object with that file name, or 0. */
uintptr_t incstack__stub_function_in(const char *file, const char *name);
/* The function of the libraries that an object needs, of the libraries that these need, and so on,
 * so many steps from the object; or 0. */
uintptr_t incstack__stub_function_for(const struct link_map *map, const char *name, int depth);

/* Finds the next definition of a function. Returns null if there is none. */
void *incstack__stub_find(void *_Atomic *cache, const char *name);
/* Finds the next definition of a function. Ends the process if there is none, because the target
 * could not have run without it either. */
void *incstack__stub_next(void *_Atomic *cache, const char *name);

/* All real functions are found at the start. A call before that finds its own. */
#define INCSTACK__REAL(name) \
	static void *_Atomic name##_cache; \
	__attribute__((constructor(101))) static void name##_find(void) \
	{ \
		incstack__stub_find(&name##_cache, #name); \
	} \
	static inline __typeof__(&(name)) name##_next(void) \
	{ \
		void *next = atomic_load_explicit(&name##_cache, memory_order_relaxed); \
\
		if (__builtin_expect(!next, 0)) \
			next = incstack__stub_next(&name##_cache, #name); \
		return (__typeof__(&(name)))next; \
	}

#endif
