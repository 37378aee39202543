/* SPDX-License-Identifier: MIT
 *
 * Which memory of the process is executable.
 */
#ifndef INCSTACK_RECORDER_EXECUTABLE_H
#define INCSTACK_RECORDER_EXECUTABLE_H

#include <stdbool.h>
#include <stdint.h>

/* What a thread knows of it. All zero: nothing. */
struct incstack__executable {
	struct incstack__executable_range {
		uintptr_t low, high;
	} ranges[8];
	unsigned next;     /* the range that the next one replaces */
	unsigned searches; /* since `since` */
	int64_t since; /* in seconds; what is known is forgotten when another second has begun */
};

/* Whether the address is in executable memory. It may be called in a handler, and keeps errno. It also says no if
 * the kernel's list cannot be read, or was searched too often in this second. */
bool incstack__executable_has(struct incstack__executable *known, uintptr_t address);

#endif
