/* SPDX-License-Identifier: MIT
 *
 * Makes protobuf messages in memory.
 */
#include "bytes.h"

#include <stdlib.h>
#include <string.h>

#include "cct.h"
#include "pprof.h"

#define MOST ((size_t)1 << 30) /* no reader takes more */

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

void incstack__bytes_free(struct incstack__bytes *bytes)
{
	free(bytes->at);
	*bytes = (struct incstack__bytes){0};
}

void incstack__bytes_add(struct incstack__bytes *bytes, const void *from, size_t size)
{
	if (!bytes->error && size > MOST - bytes->used)
		bytes->error = INCSTACK_ELIMIT;
	if (!bytes->error)
		bytes->error =
			incstack__reserve((void **)&bytes->at, &bytes->room, bytes->used + size, 1);
	if (bytes->error || !size)
		return;
	memcpy(bytes->at + bytes->used, from, size);
	bytes->used += size;
}

void incstack__bytes_varint(struct incstack__bytes *bytes, uint64_t number)
{
	unsigned char coded[INCSTACK__VARINT_MAX];
	size_t size = 0;

	for (; number >= 0x80; number >>= 7)
		coded[size++] = (unsigned char)(number | 0x80);
	coded[size++] = (unsigned char)number;
	incstack__bytes_add(bytes, coded, size);
}

static void tag(struct incstack__bytes *bytes, uint32_t field, unsigned wire)
{
	incstack__bytes_varint(bytes, (uint64_t)field << 3 | wire);
}

void incstack__bytes_number(struct incstack__bytes *bytes, uint32_t field, uint64_t number)
{
	if (!number)
		return;
	tag(bytes, field, WIRE_VARINT);
	incstack__bytes_varint(bytes, number);
}

void incstack__bytes_fixed(struct incstack__bytes *bytes, uint32_t field, uint64_t number)
{
	unsigned char coded[sizeof(number)];

	for (size_t i = 0; i < sizeof(coded); i++)
		coded[i] = (unsigned char)(number >> 8 * i);
	tag(bytes, field, WIRE_FIXED64);
	incstack__bytes_add(bytes, coded, sizeof(coded));
}

void incstack__bytes_field(struct incstack__bytes *bytes, uint32_t field, const void *from,
			   size_t size)
{
	tag(bytes, field, WIRE_BYTES);
	incstack__bytes_varint(bytes, size);
	incstack__bytes_add(bytes, from, size);
}

void incstack__bytes_message(struct incstack__bytes *bytes, uint32_t field,
			     struct incstack__bytes *message)
{
	if (message->error && !bytes->error)
		bytes->error = message->error;
	incstack__bytes_field(bytes, field, message->at, message->used);
	message->used = 0;
}
