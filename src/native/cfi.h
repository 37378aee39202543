/* SPDX-License-Identifier: MIT
 *
 * Reads the bytes of an unwind table within bounds, and evaluates DWARF expressions.
 */
#ifndef INCSTACK_SRC_NATIVE_CFI_H
#define INCSTACK_SRC_NATIVE_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The bytes to be read. After an error (`bad`), every read returns 0. */
struct reader {
	const unsigned char *at, *end;
	bool bad;
};

static inline uint64_t read_bytes(struct reader *r, size_t size)
{
	uint64_t value = 0;

	if (r->bad || (size_t)(r->end - r->at) < size) {
		r->bad = true;
		return 0;
	}
	memcpy(&value, r->at, size);
	r->at += size;
	return value;
}

static inline void skip(struct reader *r, uint64_t size)
{
	if (r->bad || (uint64_t)(r->end - r->at) < size)
		r->bad = true;
	else
		r->at += size;
}

static inline uint64_t read_long_leb(struct reader *r, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint64_t byte;

	do {
		byte = read_bytes(r, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && byte & 0x40)
		value |= ~UINT64_C(0) << shift;
	return value;
}

/* Nearly all numbers are one byte below 0x40, which is the same signed and unsigned. */
static inline uint64_t read_leb(struct reader *r, bool is_signed)
{
	if (!r->bad && r->at < r->end && *r->at < 0x40)
		return *r->at++;
	return read_long_leb(r, is_signed);
}

static inline uint64_t read_unsigned(struct reader *r)
{
	return read_leb(r, false);
}

static inline int64_t read_signed(struct reader *r)
{
	return (int64_t)read_leb(r, true);
}

/* The symbolic value of an expression, evaluated without the values of registers. */
enum place_kind {
	PLACE_UNKNOWN,
	PLACE_NUMBER,   /* the number `offset` */
	PLACE_REGISTER, /* the value of the register, plus `offset` */
	PLACE_LOADED,   /* the word stored at that address */
};

struct cfi_place {
	enum place_kind kind;
	uint64_t number; /* the DWARF number of the register */
	int64_t offset;
};

/* Evaluates an expression for the code at `address`. */
struct cfi_place incstack__cfi_evaluate(struct reader r, uintptr_t address);

#endif
