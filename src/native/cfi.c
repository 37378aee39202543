/* SPDX-License-Identifier: MIT
 *
 * The common unwind rules, read straight from .eh_frame: no lock, no system call,
 * no memory, some ten times faster than libunwind (which masks signals nine times
 * for a rule). Understands what compilers write for nearly every function: CFA from
 * the stack or the frame pointer, return address and frame pointer saved at
 * offsets from it. At the first thing beyond that it gives up, and libunwind is asked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <incstack/native.h>

#include "native.h"

enum { FP = 6, SP = 7, RA = 16 }; /* DWARF's numbers of the registers */
enum { SAME, AT_OFFSET, OTHER };  /* where a register of the caller is */
enum { STATES = 8 };              /* remembered at once: compilers need one or two */

struct saved {
	int where;
	int64_t offset; /* from the CFA */
};

struct state {
	uint64_t cfa_register; /* OTHER_CFA: an expression */
	int64_t cfa_offset;
	struct saved fp, sp, ra;
};

#define OTHER_CFA UINT64_MAX

/* What is read, and whether it went wrong: then everything reads as 0. */
struct reader {
	const unsigned char *at, *end;
	bool bad;
};

struct cie {
	uint64_t code_unit;
	int64_t data_unit;
	unsigned char encoding; /* of addresses in its FDEs */
	bool has_data;
	struct reader program;
};

struct program {
	const struct cie *cie;
	uintptr_t at, address;
	struct state state, initial, remembered[STATES];
	unsigned depth;
};

/* ---- bytes ----------------------------------------------------------------- */

static uint64_t read_bytes(struct reader *r, size_t size)
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

static void skip(struct reader *r, uint64_t size)
{
	if (r->bad || (uint64_t)(r->end - r->at) < size)
		r->bad = true;
	else
		r->at += size;
}

static uint64_t read_long_leb(struct reader *r, bool is_signed)
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

/* Nearly all are one byte, and then the same with a sign and without. */
static inline uint64_t read_leb(struct reader *r, bool is_signed)
{
	if (!r->bad && r->at < r->end && *r->at < 0x40)
		return *r->at++;
	return read_long_leb(r, is_signed);
}

static uint64_t read_unsigned(struct reader *r)
{
	return read_leb(r, false);
}

static int64_t read_signed(struct reader *r)
{
	return (int64_t)read_leb(r, true);
}

enum { FORMAT = 0x0f, ABSOLUTE = 0x00, DATA2 = 0x02, DATA4 = 0x03, DATA8 = 0x04, SIGNED = 0x08 };
enum { APPLICATION = 0xf0, RELATIVE = 0x10 };

static size_t encoded_size(unsigned char encoding)
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

static uintptr_t read_encoded(struct reader *r, unsigned char encoding)
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

/* The reader of one CIE or FDE, without its length. */
static struct reader open_entry(const unsigned char *entry)
{
	uint32_t length;

	memcpy(&length, entry, sizeof(length));
	entry += sizeof(length);
	return (struct reader){entry, entry + length, length == 0 || length == UINT32_MAX};
}

/* ---- CIE ------------------------------------------------------------------- */

/* A signal frame, and what is unknown, is libunwind's. */
static void read_augmentation(struct reader *r, const char *letters, struct cie *cie)
{
	struct reader data;
	uint64_t size;

	cie->has_data = *letters == 'z';
	if (!cie->has_data) {
		r->bad |= *letters != 0;
		return;
	}
	size = read_unsigned(r);
	data = *r;
	skip(r, size);
	while (*++letters && !r->bad) {
		if (*letters == 'R')
			cie->encoding = (unsigned char)read_bytes(&data, 1);
		else if (*letters == 'L')
			skip(&data, 1);
		else if (*letters == 'P')
			skip(&data, encoded_size((unsigned char)read_bytes(&data, 1)));
		else
			r->bad = true;
	}
	r->bad |= data.bad;
}

static bool read_cie(const unsigned char *entry, struct cie *cie)
{
	struct reader r = open_entry(entry);
	const char *letters;
	uint64_t version;

	r.bad |= read_bytes(&r, 4) != 0;
	version = read_bytes(&r, 1);
	letters = (const char *)r.at;
	while (read_bytes(&r, 1) != 0)
		;
	*cie = (struct cie){.code_unit = read_unsigned(&r)};
	cie->data_unit = read_signed(&r);
	r.bad |= (version == 1 ? read_bytes(&r, 1) : read_unsigned(&r)) != RA;
	r.bad |= version != 1 && version != 3;
	if (!r.bad)
		read_augmentation(&r, letters, cie);
	cie->program = r;
	return !r.bad;
}

/* ---- the program that makes the table of rules -------------------------------- */

static struct saved *saved_of(struct state *state, uint64_t number)
{
	switch (number) {
	case FP:
		return &state->fp;
	case SP:
		return &state->sp;
	case RA:
		return &state->ra;
	default:
		return NULL;
	}
}

static void set_saved(struct program *p, uint64_t number, int where, int64_t offset)
{
	struct saved *saved = saved_of(&p->state, number);

	if (saved)
		*saved = (struct saved){where, offset};
}

static void restore(struct program *p, uint64_t number)
{
	struct saved *saved = saved_of(&p->state, number);

	if (saved)
		*saved = *saved_of(&p->initial, number);
}

static void remember(struct program *p, struct reader *r)
{
	if (p->depth == STATES)
		r->bad = true;
	else
		p->remembered[p->depth++] = p->state;
}

static void recall(struct program *p, struct reader *r)
{
	if (p->depth == 0)
		r->bad = true;
	else
		p->state = p->remembered[--p->depth];
}

static void advance(struct program *p, uint64_t units)
{
	p->at += units * p->cie->code_unit;
}

static void set_cfa(struct program *p, uint64_t number, int64_t offset)
{
	p->state.cfa_register = number;
	p->state.cfa_offset = offset;
}

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
	VAL_EXPRESSION = 0x16,
	ARGUMENTS_SIZE = 0x2e,
};

/* The instructions about the CFA and those that move on; false: another one. */
static bool execute_cfa(struct program *p, struct reader *r, unsigned char code)
{
	uint64_t number;

	switch (code) {
	case ADVANCE_1:
	case ADVANCE_2:
	case ADVANCE_4:
		advance(p, read_bytes(r, (size_t)1 << (code - ADVANCE_1)));
		return true;
	case DEF_CFA:
		number = read_unsigned(r);
		set_cfa(p, number, (int64_t)read_unsigned(r));
		return true;
	case DEF_CFA_REGISTER:
		p->state.cfa_register = read_unsigned(r);
		return true;
	case DEF_CFA_OFFSET:
		p->state.cfa_offset = (int64_t)read_unsigned(r);
		return true;
	case DEF_CFA_EXPRESSION:
		skip(r, read_unsigned(r));
		set_cfa(p, OTHER_CFA, 0);
		return true;
	default:
		return false;
	}
}

/* libunwind refuses functions that save vector registers; so they stay refused. */
static uint64_t read_register(struct reader *r)
{
	const uint64_t number = read_unsigned(r);

	r->bad |= number > RA;
	return number;
}

static void execute_saved(struct program *p, struct reader *r, unsigned char code)
{
	const uint64_t number = read_register(r);

	switch (code) {
	case OFFSET_EXTENDED:
		set_saved(p, number, AT_OFFSET, (int64_t)read_unsigned(r) * p->cie->data_unit);
		break;
	case RESTORE_EXTENDED:
		restore(p, number);
		break;
	case SAME_VALUE:
		set_saved(p, number, SAME, 0);
		break;
	case UNDEFINED:
		set_saved(p, number, OTHER, 0);
		break;
	case IN_REGISTER:
		(void)read_unsigned(r);
		set_saved(p, number, OTHER, 0);
		break;
	case EXPRESSION:
	case VAL_EXPRESSION:
		skip(r, read_unsigned(r));
		set_saved(p, number, OTHER, 0);
		break;
	default:
		r->bad = true;
	}
}

static void execute(struct program *p, struct reader *r, unsigned char code)
{
	const unsigned char operand = code & 0x3f;

	if (code >> 6 == ADVANCE)
		advance(p, operand);
	else if (code >> 6 == OFFSET && operand <= RA)
		set_saved(p, operand, AT_OFFSET, (int64_t)read_unsigned(r) * p->cie->data_unit);
	else if (code >> 6 == RESTORE)
		restore(p, operand);
	else if (code == REMEMBER_STATE)
		remember(p, r);
	else if (code == RESTORE_STATE)
		recall(p, r);
	else if (code == ARGUMENTS_SIZE)
		(void)read_unsigned(r);
	else if (code >> 6 == OFFSET)
		r->bad = true;
	else if (code != 0 && !execute_cfa(p, r, code))
		execute_saved(p, r, code);
}

static bool run(struct program *p, struct reader r)
{
	while (!r.bad && r.at < r.end && p->at <= p->address)
		execute(p, &r, (unsigned char)read_bytes(&r, 1));
	return !r.bad;
}

/* ---- the rule -------------------------------------------------------------- */

/* The distance of a slot below the CFA as the struct holds it. */
static bool below(const struct saved *saved)
{
	const int64_t distance = -saved->offset;

	return saved->where == AT_OFFSET && distance > 0 && distance <= UINT16_MAX &&
	       distance % 8 == 0;
}

static bool rule_of(const struct state *s, struct incstack_rule *rule)
{
	const bool has_fp = s->fp.where != SAME;

	if ((s->cfa_register != SP && s->cfa_register != FP) || s->sp.where != SAME ||
	    !below(&s->ra) || (has_fp && !below(&s->fp)) || s->cfa_offset % 8 != 0 ||
	    s->cfa_offset < 0 || s->cfa_offset > INT32_MAX)
		return false;
	*rule = (struct incstack_rule){
		.kind = s->cfa_register == SP ? INCSTACK_RULE_SP : INCSTACK_RULE_FP,
		.cfa_offset = (int32_t)s->cfa_offset,
		.ra_offset = (uint16_t)-s->ra.offset,
		.fp_offset = (uint16_t)(has_fp ? -s->fp.offset : 0),
	};
	return true;
}

static const unsigned char *cie_of(const struct reader *fde)
{
	uint32_t back;

	memcpy(&back, fde->at, sizeof(back));
	return back ? fde->at - back : NULL;
}

/* Whether the FDE holds the address and gives it a rule that is understood. */
bool incstack__native_fde_rule(const void *fde, uintptr_t address, struct incstack_rule *rule)
{
	struct program p = {.address = address};
	struct reader r = open_entry(fde);
	const unsigned char *entry = r.bad ? NULL : cie_of(&r);
	struct cie cie;
	uintptr_t low;

	if (!entry || !read_cie(entry, &cie))
		return false;
	skip(&r, 4);
	p.cie = &cie;
	p.at = low = read_encoded(&r, cie.encoding);
	if (address - low >= read_encoded(&r, cie.encoding & FORMAT & ~SIGNED))
		return false;
	if (cie.has_data)
		skip(&r, read_unsigned(&r));
	if (r.bad || !run(&p, cie.program))
		return false;
	p.initial = p.state;
	return p.at == low && run(&p, r) && rule_of(&p.state, rule);
}
