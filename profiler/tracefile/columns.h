/* SPDX-License-Identifier: MIT
 *
 * The columns of a packed trace file. The same calls write them and read them: a packer passes what it has and
 * gets it back; an unpacker passes anything and gets what the packer had. So one function describes a field for both.
 *
 * What is read is not trusted. After the end of a column, or after a failed allocation, `failed` is set, and
 * every value is 0.
 */
#ifndef INCSTACK_TRACEFILE_COLUMNS_H
#define INCSTACK_TRACEFILE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "packed_format.h"

struct incstack__columns {
	bool packs;
	bool failed;
	struct incstack__columns_one {
		unsigned char *data;
		size_t used; /* bytes of it */
		size_t room; /* of a packer */
		size_t at;   /* of an unpacker: the next byte */
	} all[INCSTACK__PACKED_COLUMNS];
};

/* Makes room for more bytes of a packer. Returns false if there is no memory. */
bool incstack__columns_grow(struct incstack__columns *columns, enum incstack__packed_column which,
			    size_t bytes);

static inline uint8_t incstack__columns_byte(struct incstack__columns *columns,
					     enum incstack__packed_column which, uint8_t byte)
{
	struct incstack__columns_one *one = &columns->all[which];

	if (!columns->packs) {
		columns->failed |= one->at == one->used;
		return columns->failed ? 0 : one->data[one->at++];
	}
	if (one->used < one->room || incstack__columns_grow(columns, which, 1))
		one->data[one->used++] = byte;
	return byte;
}

uint64_t incstack__columns_number(struct incstack__columns *columns,
				  enum incstack__packed_column which, uint64_t number);
/* A number around 0, which may wrap. */
uint64_t incstack__columns_difference(struct incstack__columns *columns,
				      enum incstack__packed_column which, uint64_t difference);
/* Copies bytes: a packer from `from`, an unpacker to `to`. */
void incstack__columns_copy(struct incstack__columns *columns, enum incstack__packed_column which,
			    const unsigned char *from, unsigned char *to, size_t bytes);

/* Empties the columns of a packer. */
void incstack__columns_clear(struct incstack__columns *columns);
void incstack__columns_free(struct incstack__columns *columns);

/* Sets the columns of an unpacker from their lengths and what follows. Returns whether the parts add up. */
bool incstack__columns_take(struct incstack__columns *columns, unsigned char *data, size_t bytes);
/* Whether all bytes were read, and nothing failed. */
bool incstack__columns_are_done(const struct incstack__columns *columns);

#endif
