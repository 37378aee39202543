/* SPDX-License-Identifier: MIT
 *
 * Which functions hand out memory, by their names.
 */
#ifndef INCSTACK_PROFILE_ALLOCATORS_H
#define INCSTACK_PROFILE_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a function is known to hand out memory. */
bool incstack__is_allocator(const char *name, size_t length);

/* Whether the name of a function says that it does: "alloc", "strdup" or the like is a word of it. */
bool incstack__sounds_like_allocator(const char *name, size_t length);

#endif
