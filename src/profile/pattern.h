/* SPDX-License-Identifier: MIT
 *
 * Names of functions, and patterns for them.
 */
#ifndef INCSTACK_PROFILE_PATTERN_H
#define INCSTACK_PROFILE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a pattern with `*` for any text matches a whole text. */
bool incstack__pattern_matches(const char *pattern, const char *text, size_t length);

/* The same for a function: the pattern may also match what incstack__function_base returns. */
bool incstack__pattern_function(const char *pattern, const char *name, size_t length);

/* Returns the length of a function's name without its parameters, and without the suffix of a
 * function that the compiler made of it. */
size_t incstack__function_base(const char *name, size_t length);

#endif
