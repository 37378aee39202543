/* SPDX-License-Identifier: MIT
 *
 * Reads the bytes of an unwind table within bounds, evaluates DWARF expressions, and has the numbers
 * of the instructions.
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

/* How addresses are encoded. */
enum { FORMAT = 0x0f, ABSOLUTE = 0x00, DATA2 = 0x02, DATA4 = 0x03, DATA8 = 0x04, SIGNED = 0x08 };
enum { APPLICATION = 0xf0, RELATIVE = 0x10 };

static inline size_t encoded_size(unsigned char encoding)
{
	switch (encoding & FORMAT & ~SIGNED) {
	case DATA2:
		return 2;
	case DATA4:
		return 4;
	case ABSOLUTE:
	case DATA8:
		return 8;
	default:
		return 0;
	}
}

static inline uintptr_t read_encoded(struct reader *r, unsigned char encoding)
{
	const uintptr_t base = (uintptr_t)r->at;
	const size_t size = encoded_size(encoding);
	uint64_t value = read_bytes(r, size);

	if (size == 0)
		r->bad = true;
	if (encoding & SIGNED && size == 4)
		value = (uint64_t)(int64_t)(int32_t)value;
	else if (encoding & SIGNED && size == 2)
		value = (uint64_t)(int64_t)(int16_t)value;
	if ((encoding & APPLICATION) == RELATIVE)
		return base + value;
	r->bad |= (encoding & APPLICATION) != 0;
	return value;
}

/* The instructions of DWARF. The first three are the upper two bits, with an operand in the others. */
enum {
	ADVANCE = 1,
	OFFSET = 2,
	RESTORE = 3,
	ADVANCE_1 = 0x02,
	ADVANCE_2 = 0x03,
	ADVANCE_4 = 0x04,
	OFFSET_EXTENDED = 0x05,
	RESTORE_EXTENDED = 0x06,
	UNDEFINED = 0x07,
	SAME_VALUE = 0x08,
	IN_REGISTER = 0x09,
	REMEMBER_STATE = 0x0a,
	RESTORE_STATE = 0x0b,
	DEF_CFA = 0x0c,
	DEF_CFA_REGISTER = 0x0d,
	DEF_CFA_OFFSET = 0x0e,
	DEF_CFA_EXPRESSION = 0x0f,
	EXPRESSION = 0x10,
	OFFSET_EXTENDED_SIGNED = 0x11,
	DEF_CFA_SIGNED = 0x12,
	DEF_CFA_OFFSET_SIGNED = 0x13,
	VAL_EXPRESSION = 0x16,
	ARGUMENTS_SIZE = 0x2e,
};

/* The symbolic value of an expression, evaluated without the values of registers. */
enum place_kind {
	PLACE_UNKNOWN,
	PLACE_NUMBER,   /* the number `offset` */
	PLACE_REGISTER, /* the value of the register, plus `offset` */
	PLACE_LOADED,   /* the word stored at the address: the register plus `offset` */
};

struct cfi_place {
	enum place_kind kind;
	uint64_t number; /* the DWARF number of the register */
	int64_t offset;
};

/* Evaluates an expression for the code at `address`. */
struct cfi_place incstack__cfi_evaluate(struct reader r, uintptr_t address);

#endif
