/* SPDX-License-Identifier: MIT
 *
 * The checks of docs/invariants.md.
 */
#ifndef INCSTACK__VERIFY_H
#define INCSTACK__VERIFY_H

#include "stack.h"

/* The number of the first invariant that does not hold, or 0. */
int incstack__broken(const stack *s, size_t most);

#endif
