/* SPDX-License-Identifier: MIT
 *
 * Evaluates the DWARF expressions of unwind tables symbolically, without the values of registers.
 * The result is a register plus an offset, or the word that is stored at that address. That is
 * enough for the three kinds of expressions that are in use on x86-64: those of PLT entries, of
 * frames that align the stack, and of the kernel's signal frame.
 */
#include "cfi.h"

enum { DEPTH = 8, REGISTERS = 17, RIP = 16 };

enum {
	DEREF = 0x06,
	CONST_1U = 0x08,
	CONST_1S = 0x09,
	CONST_2U = 0x0a,
	CONST_2S = 0x0b,
	CONST_4U = 0x0c,
	CONST_4S = 0x0d,
	CONST_U = 0x10,
	CONST_S = 0x11,
	DUP = 0x12,
	AND = 0x1a,
	MINUS = 0x1c,
	OR = 0x21,
	PLUS = 0x22,
	PLUS_CONSTANT = 0x23,
	SHIFT_LEFT = 0x24,
	EQUAL = 0x29,
	AT_LEAST = 0x2a,
	ABOVE = 0x2b,
	AT_MOST = 0x2c,
	BELOW = 0x2d,
	OTHER_THAN = 0x2e,
	LITERAL = 0x30,
	BASE_REGISTER = 0x70,
};

struct machine {
	struct reader r;
	uintptr_t address;
	struct cfi_place stack[DEPTH];
	unsigned depth;
};

static void push(struct machine *m, enum place_kind kind, uint64_t number, int64_t offset)
{
	if (m->depth == DEPTH)
		m->r.bad = true;
	else
		m->stack[m->depth++] = (struct cfi_place){kind, number, offset};
}

static struct cfi_place pop(struct machine *m)
{
	if (m->depth == 0) {
		m->r.bad = true;
		return (struct cfi_place){PLACE_UNKNOWN, 0, 0};
	}
	return m->stack[--m->depth];
}

static void push_number(struct machine *m, int64_t value)
{
	push(m, PLACE_NUMBER, 0, value);
}

/* Pushes a register plus an offset. The value of rip is known: it is the address. */
static void push_register(struct machine *m, uint64_t number)
{
	const int64_t offset = read_signed(&m->r);

	if (number == RIP)
		push_number(m, (int64_t)(m->address + (uint64_t)offset));
	else if (number < REGISTERS)
		push(m, PLACE_REGISTER, number, offset);
	else
		m->r.bad = true;
}

static void load(struct machine *m)
{
	const struct cfi_place from = pop(m);

	if (from.kind == PLACE_REGISTER)
		push(m, PLACE_LOADED, from.number, from.offset);
	else
		m->r.bad = true;
}

static void add(struct machine *m, struct cfi_place left, struct cfi_place right)
{
	const int64_t sum = (int64_t)((uint64_t)left.offset + (uint64_t)right.offset);

	if (left.kind == PLACE_REGISTER && right.kind == PLACE_NUMBER)
		push(m, PLACE_REGISTER, left.number, sum);
	else if (left.kind == PLACE_NUMBER && right.kind == PLACE_REGISTER)
		push(m, PLACE_REGISTER, right.number, sum);
	else if (left.kind == PLACE_NUMBER && right.kind == PLACE_NUMBER)
		push_number(m, sum);
	else
		m->r.bad = true;
}

static int64_t calculate(struct machine *m, unsigned char code, int64_t left, int64_t right)
{
	switch (code) {
	case AND:
		return left & right;
	case OR:
		return left | right;
	case SHIFT_LEFT:
		return right >= 0 && right < 64 ? (int64_t)((uint64_t)left << right) : 0;
	case EQUAL:
		return left == right;
	case AT_LEAST:
		return left >= right;
	case ABOVE:
		return left > right;
	case AT_MOST:
		return left <= right;
	case BELOW:
		return left < right;
	case OTHER_THAN:
		return left != right;
	default:
		m->r.bad = true;
		return 0;
	}
}

static void combine(struct machine *m, unsigned char code)
{
	struct cfi_place right = pop(m);
	const struct cfi_place left = pop(m);

	if (code == MINUS && right.kind == PLACE_NUMBER)
		right.offset = (int64_t)(-(uint64_t)right.offset);
	if (code == PLUS || (code == MINUS && right.kind == PLACE_NUMBER))
		add(m, left, right);
	else if (left.kind == PLACE_NUMBER && right.kind == PLACE_NUMBER)
		push_number(m, calculate(m, code, left.offset, right.offset));
	else
		m->r.bad = true;
}

/* Pushes a constant. Returns false if the code is not that of a constant. */
static bool push_constant(struct machine *m, unsigned char code)
{
	struct reader *r = &m->r;

	switch (code) {
	case CONST_1U:
	case CONST_2U:
	case CONST_4U:
		push_number(m, (int64_t)read_bytes(r, (size_t)1 << (code - CONST_1U) / 2));
		return true;
	case CONST_1S:
		push_number(m, (int8_t)read_bytes(r, 1));
		return true;
	case CONST_2S:
		push_number(m, (int16_t)read_bytes(r, 2));
		return true;
	case CONST_4S:
		push_number(m, (int32_t)read_bytes(r, 4));
		return true;
	case CONST_U:
		push_number(m, (int64_t)read_unsigned(r));
		return true;
	case CONST_S:
		push_number(m, read_signed(r));
		return true;
	default:
		return false;
	}
}

static void execute(struct machine *m, unsigned char code)
{
	if (code >= BASE_REGISTER && code < BASE_REGISTER + 32) {
		push_register(m, code - (unsigned)BASE_REGISTER);
	} else if (code >= LITERAL && code < LITERAL + 32) {
		push_number(m, code - LITERAL);
	} else if (code == DEREF) {
		load(m);
	} else if (code == DUP) {
		const struct cfi_place top = pop(m);

		push(m, top.kind, top.number, top.offset);
		push(m, top.kind, top.number, top.offset);
	} else if (code == PLUS_CONSTANT) {
		push_number(m, (int64_t)read_unsigned(&m->r));
		combine(m, PLUS);
	} else if (!push_constant(m, code)) {
		combine(m, code);
	}
}

struct cfi_place incstack__cfi_evaluate(struct reader r, uintptr_t address)
{
	struct machine m = {.r = r, .address = address};
	struct cfi_place result;

	while (!m.r.bad && m.r.at < m.r.end)
		execute(&m, (unsigned char)read_bytes(&m.r, 1));
	result = pop(&m);
	return m.r.bad ? (struct cfi_place){PLACE_UNKNOWN, 0, 0} : result;
}
