/* SPDX-License-Identifier: MIT
 *
 * Unwind information for code that is made at run time.
 */
#ifndef INCSTACK__UNWIND_INFO_H
#define INCSTACK__UNWIND_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most that one description takes: a CIE and an FDE. */
#define INCSTACK__UNWIND_INFO_BYTES 1024

/* Writes to out what .eh_frame says of the code that begins at `from`, as a
 * description of `bytes` bytes at `to`. Returns the end of what was written, null
 * if the code has no description that can be copied. A zero word ends a list. */
uint8_t *incstack__unwind_info_copy(uint8_t *out, uintptr_t from, uintptr_t bytes, uintptr_t to,
				    uintptr_t personality);

#endif
