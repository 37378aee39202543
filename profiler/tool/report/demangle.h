/* SPDX-License-Identifier: MIT
 *
 * Names of C++ and Rust functions as the source has them.
 */
#ifndef INCSTACK_TOOL_DEMANGLE_H
#define INCSTACK_TOOL_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the name that a compiler of C++ or Rust has mangled, cut off where it does not fit, with a zero byte.
 * Returns false if it is no such name. */
bool tool_demangle(const char *name, char *text, size_t size);

#endif
