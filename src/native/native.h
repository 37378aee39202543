/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the native embedder.
 */
#ifndef INCSTACK_SRC_NATIVE_H
#define INCSTACK_SRC_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <libunwind.h>

#include <incstack/embedder.h>

#include "trace/shared.h"

/* Returns the libunwind address space in which rules are read, or null if there is no memory. The
 * first call makes it, with malloc. */
unw_addr_space_t incstack__native_space(void);

/* Returns the address space in *made. If there is none, it makes one with that caching policy
 * that uses the find_proc_info, access_mem and access_reg of `accessors`, and stores it in *made;
 * it is never freed. Returns null if there is no memory. */
unw_addr_space_t incstack__native_space_make(unw_addr_space_t *made, unw_accessors_t accessors,
					     unw_caching_policy_t policy);

/* Reads the rule of an address from .eh_frame. Returns false if that gives none. libunwind may
 * still know one, for example in an object without .eh_frame_hdr. The function takes no lock
 * (since glibc 2.35) and may be called anywhere. The second function reads from a given entry. */
bool incstack__native_cfi_rule(uintptr_t address, struct incstack_rule *rule);
bool incstack__native_fde_rule(const void *fde, uintptr_t address, struct incstack_rule *rule);

/* The sorted index of an unwind table: pairs of a function and its entry, each as a 32-bit
 * distance from the base. The function below finds the table that covers an address. */
struct incstack__native_index {
	uintptr_t base, entries;
	size_t count;
	uintptr_t low, high; /* the range of the object */
};
bool incstack__native_find_index(uintptr_t address, struct incstack__native_index *index);

/* To be called in the child of fork, whose walks then use a new address space. At the fork, no
 * thread may have been in libunwind's part of a walk, because other locks of libunwind cannot be
 * made anew. */
void incstack__native_walk_forked(void);
/* The same walk as incstack_native_walk, but libunwind caches the rules of code, which makes the
 * walk three times as fast. With `forget` the cache is emptied first: modules may have been loaded
 * or unloaded since the last call. Only one thread at a time may call it. */
int incstack__native_walk_remembering(struct incstack_frame *frames, int max, bool forget);

/* Returns the mode (enum incstack_mode) to use instead of `wanted`, after the environment variable
 * INCSTACK_MODE was applied: see incstack_runtime_create_native. */
uint32_t incstack__native_mode(uint32_t wanted);

/* The embedder's find_rule and interrupted: see incstack_native_embedder. */
int incstack__native_find_rule(void *context, uintptr_t address, struct incstack_rule *rule);
int incstack__native_interrupted(void *context, const struct incstack_interruption *at,
				 struct incstack_top *top);

/* The embedder's find_rule_quickly: finds all rules except those that only libunwind knows. */
int incstack__native_find_rule_quickly(void *context, uintptr_t address,
				       struct incstack_rule *rule);

/* Whether that function may be called in a signal handler: it takes no lock. */
extern const bool incstack__native_finds_in_handlers;

/* Whether the address is in the outermost frame of a libc context, or of a Boost.Context fiber.
 * The second is only called if no table describes the address. Both may be called anywhere. */
bool incstack__native_is_context_base(uintptr_t address);
bool incstack__native_is_fiber_base(uintptr_t address);

/* Asks libunwind for the rule of the address, for incstack__native_find_rule. */
int incstack__native_libunwind_rule(unw_addr_space_t space, uintptr_t address,
				    struct incstack_rule *rule);

/* Adjacent pages that the kernel has said are readable. */
struct incstack__native_pages {
	uintptr_t low, high;
};
/* Whether the word at the address can be read. If its page is not among them, the function asks the
 * kernel and adds the page. It refuses a word that is not aligned and may span two pages. */
bool incstack__native_pages_readable(struct incstack__native_pages *pages, uintptr_t address);
/* Whether all these bytes can be read. `pages` are struct incstack__native_pages. The macro is for bytes that
 * are read once. */
bool incstack__native_readable(void *pages, uintptr_t at, uint64_t bytes);
#define incstack__native_readable_once(at, bytes) \
	incstack__native_readable(&(struct incstack__native_pages){0, 0}, at, bytes)

/* interrupted.c: whether the rules describe the code that a signal has interrupted. All of it may be
 * called in a signal handler, if `find` may. */
enum incstack__native_described {
	INCSTACK__NATIVE_DESCRIBED,
	INCSTACK__NATIVE_NO_RULE, /* of the interrupted code */
	INCSTACK__NATIVE_INEXACT, /* a return address is not one */
};
struct incstack__native_bounds {
	uintptr_t low, high;
};
typedef int incstack__native_find(void *context, uintptr_t address, struct incstack_rule *rule);
enum incstack__native_described incstack__native_is_described(incstack__native_find *find,
							      struct incstack__native_bounds stack,
							      const struct incstack_top *top);
/* Whether the instruction before pc is a call. It also tells so of some data. */
bool incstack__native_follows_call(uintptr_t pc);

#endif
