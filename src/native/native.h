/* SPDX-License-Identifier: MIT
 *
 * What the files of the native embedder share with each other.
 */
#ifndef INCSTACK_SRC_NATIVE_H
#define INCSTACK_SRC_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <libunwind.h>

#include <incstack/embedder.h>

/* The address space that rules are read in; null: no memory. Made by the first
 * call, with malloc. */
unw_addr_space_t incstack__native_space(void);

/* The address space in *made, or a new one that caches nothing, with these find_proc_info,
 * access_mem and access_reg; null: no memory. It is stored in *made and never freed. */
unw_addr_space_t incstack__native_space_make(unw_addr_space_t *made, unw_accessors_t accessors);

/* Whether .eh_frame gives the address a rule; libunwind may know one where it has none, for
 * example in an object without .eh_frame_hdr. Takes no lock (since glibc 2.35), may be called
 * anywhere. fde: of a known entry. */
bool incstack__native_cfi_rule(uintptr_t address, struct incstack_rule *rule);
bool incstack__native_fde_rule(const void *fde, uintptr_t address, struct incstack_rule *rule);

/* The sorted index of the unwind table that has the address: pairs of a function and its
 * entry, as 32-bit distances from the base. */
struct incstack__native_index {
	uintptr_t base, entries;
	size_t count;
	uintptr_t low, high; /* of the object */
};
bool incstack__native_find_index(uintptr_t address, struct incstack__native_index *index);

/* In the child of fork. No thread may have been in a walk, but in its own parts. */
void incstack__native_walk_forked(void);

/* The find_rule_quickly of the table: all rules but libunwind's. */
int incstack__native_find_rule_quickly(void *context, uintptr_t address,
				       struct incstack_rule *rule);

/* Whether the address is in the outermost frame of a context of libc, or of a fiber of
 * Boost.Context; the latter is asked where no table describes it. May be called anywhere. */
bool incstack__native_is_context_base(uintptr_t address);
bool incstack__native_is_fiber_base(uintptr_t address);

/* What libunwind says of the address, for incstack_native_find_rule. */
int incstack__native_libunwind_rule(unw_addr_space_t space, uintptr_t address,
				    struct incstack_rule *rule);

/* Of the core: whether the pc lies in a pool of thunks. */
int incstack__thunk_contains(uintptr_t pc);
/* And whether a page can be read. */
bool incstack__page_readable(uintptr_t page);

#endif
