/* SPDX-License-Identifier: MIT
 *
 * Writes streams of numbers; see packed.h.
 */
#include "packed.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void incstack__packed_begin(struct incstack__packed *packed, FILE *stream)
{
	*packed = (struct incstack__packed){.stream = stream};
	putc_unlocked('"', stream);
}

/* Writes the first `count` of the four digits of three bytes. */
static void put_digits(const struct incstack__packed *packed, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		putc_unlocked(digits[packed->bits >> (18 - 6 * i) & 63], packed->stream);
}

static void put_byte(struct incstack__packed *packed, unsigned byte)
{
	packed->bits |= byte << (16 - 8 * packed->count);
	if (++packed->count < 3)
		return;
	put_digits(packed, 4);
	packed->bits = 0;
	packed->count = 0;
}

void incstack__packed_number(struct incstack__packed *packed, uint64_t number)
{
	for (; number > 127; number >>= 7)
		put_byte(packed, 128 | (unsigned)(number & 127));
	put_byte(packed, (unsigned)number);
}

void incstack__packed_end(struct incstack__packed *packed)
{
	if (packed->count)
		put_digits(packed, packed->count + 1);
	for (unsigned i = packed->count; i && i < 3; i++)
		putc_unlocked('=', packed->stream);
	putc_unlocked('"', packed->stream);
}
