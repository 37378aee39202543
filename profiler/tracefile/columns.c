/* SPDX-License-Identifier: MIT
 *
 * The columns of a packed trace file; see columns.h.
 */
#include <stdlib.h>
#include <string.h>

#include "columns.h"

bool incstack__columns_grow(struct incstack__columns *columns, enum incstack__packed_column which,
			    size_t bytes)
{
	struct incstack__columns_one *one = &columns->all[which];
	const size_t room = 2 * (one->used + bytes);
	unsigned char *grown = columns->failed ? NULL : realloc(one->data, room);

	if (grown == NULL) {
		columns->failed = true;
		return false;
	}
	one->data = grown;
	one->room = room;
	return true;
}

static void put(struct incstack__columns *columns, enum incstack__packed_column which,
		const void *bytes, size_t count)
{
	struct incstack__columns_one *one = &columns->all[which];

	if (one->room - one->used < count && !incstack__columns_grow(columns, which, count))
		return;
	if (count > 0) /* a column without bytes may have no memory yet */
		memcpy(one->data + one->used, bytes, count);
	one->used += count;
}

/* Returns the next bytes of an unpacker, or null. */
static const unsigned char *get(struct incstack__columns *columns,
				enum incstack__packed_column which, size_t count)
{
	struct incstack__columns_one *one = &columns->all[which];
	const unsigned char *from = one->data + one->at;

	if (columns->failed || one->used - one->at < count) {
		columns->failed = true;
		return NULL;
	}
	one->at += count;
	return from;
}

enum { NUMBER_MOST = 10 }; /* bytes of a number */

static void put_number(struct incstack__columns *columns, enum incstack__packed_column which,
		       uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		incstack__columns_byte(columns, which, (uint8_t)(number | 0x80));
	incstack__columns_byte(columns, which, (uint8_t)number);
}

static uint64_t get_number(struct incstack__columns *columns, enum incstack__packed_column which)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < NUMBER_MOST; i++) {
		const uint8_t byte = incstack__columns_byte(columns, which, 0);

		number |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte < 0x80)
			return number;
	}
	columns->failed = true;
	return 0;
}

uint64_t incstack__columns_number(struct incstack__columns *columns,
				  enum incstack__packed_column which, uint64_t number)
{
	if (!columns->packs)
		return get_number(columns, which);
	put_number(columns, which, number);
	return number;
}

uint64_t incstack__columns_difference(struct incstack__columns *columns,
				      enum incstack__packed_column which, uint64_t difference)
{
	const uint64_t folded = incstack__columns_number(
		columns, which, difference << 1 ^ (0 - (difference >> 63)));

	return folded >> 1 ^ (0 - (folded & 1));
}

void incstack__columns_copy(struct incstack__columns *columns, enum incstack__packed_column which,
			    const unsigned char *from, unsigned char *to, size_t bytes)
{
	if (columns->packs) {
		put(columns, which, from, bytes);
		return;
	}
	from = get(columns, which, bytes);
	if (from != NULL)
		memcpy(to, from, bytes);
}

void incstack__columns_clear(struct incstack__columns *columns)
{
	for (unsigned i = 0; i < INCSTACK__PACKED_COLUMNS; i++)
		columns->all[i].used = 0;
}

void incstack__columns_free(struct incstack__columns *columns)
{
	for (unsigned i = 0; i < INCSTACK__PACKED_COLUMNS; i++)
		free(columns->all[i].data);
}

bool incstack__columns_take(struct incstack__columns *columns, unsigned char *data, size_t bytes)
{
	uint32_t lengths[INCSTACK__PACKED_COLUMNS];
	unsigned char *at = data + sizeof(lengths);

	if (bytes < sizeof(lengths))
		return false;
	memcpy(lengths, data, sizeof(lengths));
	for (unsigned i = 0; i < INCSTACK__PACKED_COLUMNS; i++) {
		if (lengths[i] > bytes - (size_t)(at - data))
			return false;
		columns->all[i] = (struct incstack__columns_one){.data = at, .used = lengths[i]};
		at += lengths[i];
	}
	return at == data + bytes;
}

bool incstack__columns_are_done(const struct incstack__columns *columns)
{
	for (unsigned i = 0; i < INCSTACK__PACKED_COLUMNS; i++)
		if (columns->all[i].at != columns->all[i].used)
			return false;
	return !columns->failed;
}
