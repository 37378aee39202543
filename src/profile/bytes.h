/* SPDX-License-Identifier: MIT
 *
 * Protobuf messages of any size in memory. An error is kept, and nothing is added after it.
 */
#ifndef INCSTACK_PROFILE_BYTES_H
#define INCSTACK_PROFILE_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* A zeroed struct is an empty message. */
struct incstack__bytes {
	unsigned char *at;
	size_t used, room;
	int error;
};

void incstack__bytes_free(struct incstack__bytes *bytes);
void incstack__bytes_add(struct incstack__bytes *bytes, const void *from, size_t size);
/* Adds a number alone, as in packed fields. */
void incstack__bytes_varint(struct incstack__bytes *bytes, uint64_t number);

/* Add a field: a number unless it is 0, one of eight bytes, and bytes with their length. */
void incstack__bytes_number(struct incstack__bytes *bytes, uint32_t field, uint64_t number);
void incstack__bytes_fixed(struct incstack__bytes *bytes, uint32_t field, uint64_t number);
void incstack__bytes_field(struct incstack__bytes *bytes, uint32_t field, const void *from,
			   size_t size);
/* Adds a message as a field, and empties it. */
void incstack__bytes_message(struct incstack__bytes *bytes, uint32_t field,
			     struct incstack__bytes *message);

#endif
