/* SPDX-License-Identifier: MIT
 *
 * A function whose CIE and FDE are written by hand and registered, so that every unwinder finds
 * them.
 */
#ifndef CFI_MADE_H
#define CFI_MADE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "native/native.h"

/* ---- the made function ---------------------------------------------------------- */

/* The entries of these two are overwritten: the first becomes the CIE of the second, whose
 * code is looked at. The linker has put both into the sorted index. */
enum { CODE_BYTES = 64, ROOM = 1024 };

void place_of_cie(void);
void made(void);
__asm__(".text\n"
	".type place_of_cie, @function\n"
	"place_of_cie:\n"
	"	.cfi_startproc\n"
	"	.rept 512\n"
	"	.cfi_escape 0x2e, 0\n"
	"	.endr\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size place_of_cie, . - place_of_cie\n"
	".type made, @function\n"
	"made:\n"
	"	.cfi_startproc\n"
	"	.rept 512\n"
	"	.cfi_escape 0x2e, 0\n"
	"	.endr\n"
	"	.fill 64, 1, 0x90\n"
	"	.cfi_endproc\n"
	".size made, . - made\n");

struct code {
	unsigned char *start, *at;
};

/* Also outside of a test of the suite. */
static inline void need(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "%s\n", what);
	exit(EXIT_FAILURE);
}

static struct code cie, fde; /* at: where the next byte goes */

static inline unsigned char *entry_of(void (*function)(void))
{
	const uintptr_t address = (uintptr_t)function;
	struct incstack__native_index index;

	need(incstack__native_find_index(address, &index), "no index");
	for (size_t i = 0; i < index.count; i++) {
		const int32_t *pair = (const int32_t *)index.entries + 2 * i;

		if (index.base + (uintptr_t)(intptr_t)pair[0] == address)
			return (unsigned char *)(index.base + (uintptr_t)(intptr_t)pair[1]);
	}
	need(false, "no entry");
	return NULL;
}

static inline void find_entries(void)
{
	const uintptr_t page = ~(uintptr_t)4095;

	cie.start = entry_of(place_of_cie);
	fde.start = entry_of(made);
	const uintptr_t low = (uintptr_t)cie.start & page;
	const uintptr_t high = ((uintptr_t)fde.start + ROOM + 4095) & page;
	need(cie.start < fde.start, "entries in another order");
	need(mprotect((void *)low, high - low, PROT_READ | PROT_WRITE) == 0, "mprotect");
}

/* ---- bytes ------------------------------------------------------------------------ */

static inline void put_bytes(struct code *c, const void *bytes, size_t size)
{
	need((size_t)(c->at - c->start) + size <= ROOM, "no room");
	if (size != 0)
		memcpy(c->at, bytes, size);
	c->at += size;
}

static inline void put(struct code *c, unsigned byte)
{
	const unsigned char b = (unsigned char)byte;

	put_bytes(c, &b, 1);
}

static inline void put_unsigned(struct code *c, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put(c, (value & 0x7f) | 0x80);
	put(c, (unsigned)value);
}

static inline void put_signed(struct code *c, int64_t value)
{
	while (value < -64 || value > 63) {
		put(c, ((unsigned)value & 0x7f) | 0x80);
		value >>= 7;
	}
	put(c, (unsigned)value & 0x7f);
}

/* ---- entries ---------------------------------------------------------------------- */

enum { FP = 6, SP = 7, RA = 16 };
enum { ABSOLUTE = 0x00, FROM_HERE_4 = 0x1b, FROM_HERE_8 = 0x1c, OMITTED = 0xff };

struct form {
	const char *letters;
	unsigned version, encoding, code_unit;
	int data_unit;
};
static const struct form common = {"zR", 1, FROM_HERE_4, 1, -8};

static inline void put_length(struct code *c)
{
	const uint32_t length = (uint32_t)(c->at - c->start - 4);

	memcpy(c->start, &length, sizeof(length));
}

static inline void put_augmentation(const struct form *f)
{
	struct code data = {(unsigned char[32]){0}, NULL};

	data.at = data.start;
	for (const char *letter = f->letters + 1; *letter; letter++) {
		if (*letter == 'R')
			put(&data, f->encoding);
		if (*letter == 'L' || *letter == 'P')
			put(&data, *letter == 'L' ? FROM_HERE_4 : ABSOLUTE);
		if (*letter == 'P')
			put_bytes(&data, &(uint64_t){0}, 8);
	}
	put_unsigned(&cie, (uint64_t)(data.at - data.start));
	put_bytes(&cie, data.start, (size_t)(data.at - data.start));
}

static inline void begin_cie(const struct form *f)
{
	cie.at = cie.start + 4;
	put_bytes(&cie, &(uint32_t){0}, 4);
	put(&cie, f->version);
	put_bytes(&cie, f->letters, strlen(f->letters) + 1);
	put_unsigned(&cie, f->code_unit);
	put_signed(&cie, f->data_unit);
	put(&cie, RA);
	if (f->letters[0] == 'z')
		put_augmentation(f);
}

/* Afterwards put(&fde, ...) adds the instructions of the FDE. */
static inline void begin_fde(const struct form *f)
{
	const bool has_encoding = strchr(f->letters, 'R') != NULL;
	const unsigned encoding = has_encoding ? f->encoding : ABSOLUTE;
	const size_t size = encoding == FROM_HERE_4 ? 4 : 8;

	put_length(&cie);
	fde.at = fde.start + 4;
	put_bytes(&fde, &(uint32_t){(uint32_t)(fde.at - cie.start)}, 4);
	const uint64_t low = (uint64_t)made - (encoding == ABSOLUTE ? 0 : (uintptr_t)fde.at);
	put_bytes(&fde, &low, size);
	put_bytes(&fde, &(uint64_t){CODE_BYTES}, size);
	if (f->letters[0] != 'z')
		return;
	put_unsigned(&fde, strchr(f->letters, 'L') ? 4 : 0);
	if (strchr(f->letters, 'L'))
		put_bytes(&fde, &(uint32_t){0}, 4);
}

enum {
	NOP = 0x00,
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
	ADVANCE = 0x40,
	OFFSET = 0x80,
	RESTORE = 0xc0,
};

/* ---- what both say of it ------------------------------------------------------------ */

static inline void dump(const char *name, const struct code *c)
{
	fprintf(stderr, "%s:", name);
	for (const unsigned char *at = c->start; at < c->at; at++)
		fprintf(stderr, " %02x", *at);
	fprintf(stderr, "\n");
}

static inline void show(const char *who, bool known, const struct incstack_rule *r)
{
	if (known)
		fprintf(stderr, "%s: kind %u, cfa %d, ra %u, fp %u, flags %u\n", who, r->kind,
			r->cfa_offset, r->ra_offset, r->fp_offset, r->flags);
	else
		fprintf(stderr, "%s: none\n", who);
}

static inline bool ask_both(size_t at, struct incstack_rule *own, struct incstack_rule *other,
			    bool *other_knows)
{
	const uintptr_t address = (uintptr_t)made + at;

	*own = *other = (struct incstack_rule){0};
	*other_knows =
		incstack__native_libunwind_rule(incstack__native_space(), address, other) == 0;
	return incstack__native_cfi_rule(address, own);
}

#endif
