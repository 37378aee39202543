/* SPDX-License-Identifier: MIT
 *
 * What the files of the native embedder share with each other.
 */
#ifndef INCSTACK_SRC_NATIVE_H
#define INCSTACK_SRC_NATIVE_H

#include <stdint.h>

#include <libunwind.h>

/* The address space that rules are read in; null: no memory. Made by the first
 * call, with malloc. */
unw_addr_space_t incstack__native_space(void);

/* Of the core: whether the pc lies in a pool of thunks. */
int incstack__thunk_contains(uintptr_t pc);

#endif
