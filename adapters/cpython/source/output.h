/* SPDX-License-Identifier: MIT
 *
 * What a recording becomes: a profile, and sums by line.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdio.h>

#include <incstack/profile.h>

#include "recording.h"

/* The sums of a line of the source. */
struct line {
	const char *name, *file; /* of the function; valid until the next recording */
	int32_t line;
	uint64_t bytes, calls, temporary, peak_bytes, live_bytes, live_calls;
};

/* Both return 0 or an error of the library. */
int output_write(FILE *stream, enum incstack_profile_format format, uint32_t kind,
		 const char *launcher, const struct incstack_profile_meta *meta);
int output_lines(struct line **lines, size_t *count);

#endif
