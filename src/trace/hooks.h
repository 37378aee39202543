/* SPDX-License-Identifier: MIT
 *
 * What tests ask the core besides its public interface. C++ may include it.
 */
#ifndef INCSTACK__HOOKS_H
#define INCSTACK__HOOKS_H

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* Checks the invariants of docs/invariants.md on the stack. Returns 0, or the number of the first
 * invariant that does not hold. No operation on the stack may be in progress. */
int incstack__stack_verify(const struct incstack_stack *s);

/* Returns after how many operations an invariant did not hold. Each of them shows a bug of the
 * library. Only debug builds check after operations; others return 0. */
uint64_t incstack__stack_broken(const struct incstack_stack *s);

INCSTACK_END_C

#endif
