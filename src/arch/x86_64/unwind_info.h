/* SPDX-License-Identifier: MIT
 *
 * Copies unwind information for code that is made at run time.
 */
#ifndef INCSTACK__UNWIND_INFO_H
#define INCSTACK__UNWIND_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The maximum size of one description, which is a CIE and an FDE. */
#define INCSTACK__UNWIND_INFO_BYTES 1024

/* Copies the description of the code that begins at `from` to `out`, as a description of `bytes`
 * bytes of code at `to`. Returns the end of what was written, or null if the code has no
 * description that can be copied. The caller ends a list of descriptions by a zero word. */
uint8_t *incstack__unwind_info_copy(uint8_t *out, uintptr_t from, uintptr_t bytes, uintptr_t to,
				    uintptr_t personality);

#endif
