/* SPDX-License-Identifier: MIT
 *
 * The output of a pprof file: a message whose fields are compressed as they are written.
 */
#ifndef INCSTACK_PROFILE_PPROF_PUT_H
#define INCSTACK_PROFILE_PPROF_PUT_H

#include <pb_encode.h>

#include "profile/cct.h"
#include "profile/gzip.h"

struct incstack__pprof_put {
	const struct incstack_profile *profile; /* whose names are written */
	struct incstack__deflater gzip;
	bool open;
	uint64_t strings;     /* in the file's string table so far */
	uint64_t *strings_of; /* for each name of the profile: its string; 0: not written yet */
	size_t names, strings_room;
};

/* A zeroed output is opened once, and closed also if that failed. */
int incstack__pprof_put_open(struct incstack__pprof_put *put,
			     const struct incstack_profile *profile, FILE *stream);
void incstack__pprof_put_close(struct incstack__pprof_put *put);

/* Makes a stream over a buffer with room for `size` bytes. */
int incstack__pprof_put_start(pb_byte_t **buffer, size_t *room, size_t size, pb_ostream_t *stream);

/* Writes a number, unless it is 0, to a message that is being made. */
bool incstack__pprof_put_number(pb_ostream_t *stream, uint32_t field, uint64_t value);

/* Write a field of the outermost message: bytes, a number unless it is 0, or a message of two numbers. */
int incstack__pprof_put_field(struct incstack__pprof_put *put, uint32_t field, const void *bytes,
			      size_t size);
int incstack__pprof_put_top_number(struct incstack__pprof_put *put, uint32_t field, uint64_t value);
int incstack__pprof_put_numbers(struct incstack__pprof_put *put, uint32_t field, uint64_t a,
				uint64_t b);

/* Writes a string. *index is its number in the string table. */
int incstack__pprof_put_string(struct incstack__pprof_put *put, const char *text, size_t length,
			       uint64_t *index);
/* Finds or writes the string of the name whose number is `name` - 1. For 0, the string is 0. */
int incstack__pprof_put_name(struct incstack__pprof_put *put, uint32_t name, uint64_t *string);

#endif
