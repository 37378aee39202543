/* SPDX-License-Identifier: MIT
 *
 * What the files of the adapter have in common.
 */
#ifndef INCSTACK__JEMALLOC_ADAPTER_H
#define INCSTACK__JEMALLOC_ADAPTER_H

#include <stdbool.h>

#include <incstack/incstack.h>

/* backtrace.c: prepares walks, and the function that jemalloc calls for each stack. */
int incstack__jemalloc_prepare(void);
void incstack__jemalloc_backtrace(void **frames, unsigned *length, unsigned max);

/* unload.c: forgets the unwind rules of code that may have been unloaded; called before each walk. And whether the
 * adapter is told of unloads, because it comes before libc in the order of the libraries. */
void incstack__jemalloc_forget_unloaded(struct incstack_runtime *runtime);
bool incstack__jemalloc_hears_unloads(void);

#endif
