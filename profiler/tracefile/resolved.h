/* SPDX-License-Identifier: MIT
 *
 * The names of codes that a trace file has itself, so that the modules need not be there when it is read. No byte of
 * them is trusted.
 */
#ifndef INCSTACK_TRACEFILE_RESOLVED_H
#define INCSTACK_TRACEFILE_RESOLVED_H

#include <stddef.h>
#include <stdint.h>

#include "format.h"

/* A payload that was checked; all zero: there is none. It must stay valid. */
struct incstack__resolved {
	struct incstack__tracefile_resolved head;
	const unsigned char *codes, *frames;
	const char *texts; /* the last byte is zero */
};

/* Checks a payload. Returns what is wrong with it, or null. */
const char *incstack__resolved_read(struct incstack__resolved *resolved,
				    const unsigned char *payload, size_t length);

/* Returns how many frames the code has, the first one in *first; 0: the code is unknown. */
uint32_t incstack__resolved_find(const struct incstack__resolved *resolved, uint64_t code,
				 uint32_t *first);
/* A frame: its texts are never null, and the file is empty if it is unknown. */
struct incstack__resolved_frame {
	const char *name, *file;
	uint32_t line;
};
struct incstack__resolved_frame incstack__resolved_frame(const struct incstack__resolved *resolved,
							 uint32_t number);
/* Returns what was said about the modules, in lines. */
const char *incstack__resolved_remarks(const struct incstack__resolved *resolved);

#endif
