/* SPDX-License-Identifier: MIT
 *
 * Reads the unwind rule of an address from its FDE in .eh_frame, without a lock, a system call or
 * an allocation (D45 in docs/decisions.md). An FDE describes one function by a program of DWARF
 * instructions. Its CIE has the first part of the program, which many functions share. Both parts
 * are executed until they pass the address. The result, struct state, says where the CFA is and
 * where the caller's registers are saved. rule_of() turns the state into a struct incstack_rule.
 *
 * This file understands what compilers and assemblers write: a CFA relative to the stack or frame
 * pointer, a return address and a frame pointer saved at offsets from the CFA, and the expressions
 * of PLT entries, of frames that align the stack, and of the kernel's signal frame. It refuses
 * everything else. The caller may then ask libunwind (rule.c).
 */
#include <ucontext.h>

#include <incstack/native.h>

#include "cfi.h"
#include "native.h"

enum { RAX = 0, RDX = 1, FP = 6, SP = 7, RA = 16 }; /* the DWARF numbers of the registers */
enum { STATES = 8 }; /* nested DW_CFA_remember_state; compilers use one or two */

/* Where a register of the caller is saved. SAME: not saved, because the function keeps it.
 * AT_OFFSET: at an offset from the CFA. AT_PLACE: at a register plus an offset, which an expression
 * gives. NOWHERE: undefined; for the return address, this marks the outermost frame. OTHER: in a
 * way that no rule can express. */
enum where { SAME, AT_OFFSET, AT_PLACE, NOWHERE, OTHER };

struct saved {
	enum where where;
	int64_t offset;  /* AT_OFFSET: from the CFA; AT_PLACE: from the register */
	uint64_t number; /* AT_PLACE: the DWARF number of the register */
};

struct state {
	struct cfi_place cfa;
	bool computed; /* whether an expression computes the CFA, even if cfa is a register */
	struct saved fp, sp, ra;
};

struct cie {
	uint64_t code_unit;
	int64_t data_unit;
	unsigned char encoding; /* of the addresses in its FDEs */
	bool has_data;
	struct reader program;
};

/* The execution of the instructions of a CIE and of an FDE. `at` is the location that was reached.
 * The execution ends where the location would pass `address`. `state` has the rules at the
 * location, `initial` the rules after the instructions of the CIE. */
struct program {
	const struct cie *cie;
	uintptr_t at, address;
	struct state state, initial, remembered[STATES];
	unsigned depth; /* of `remembered` */
	/* Whether RAX or RDX was saved. A landing pad takes the exception in these registers. The
	 * functions of an unwinder that jump to a landing pad save them. Such a function also
	 * changes its own return address. */
	bool return_changes;
};

/* Returns a reader of one CIE or FDE, after its length. */
static struct reader open_entry(const unsigned char *entry)
{
	uint32_t length;

	memcpy(&length, entry, sizeof(length));
	entry += sizeof(length);
	return (struct reader){entry, entry + length, length == 0 || length == UINT32_MAX};
}

/* ---- CIE ------------------------------------------------------------------- */

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
			r->bad |= *letters != 'S'; /* signal frames are recognized by their rules */
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

static void set_saved(struct program *p, uint64_t number, enum where where, int64_t offset)
{
	struct saved *saved = saved_of(&p->state, number);

	p->return_changes |= where == AT_OFFSET && (number == RAX || number == RDX);
	if (saved)
		*saved = (struct saved){where, offset, 0};
}

/* Reads and evaluates the expression that comes next. */
static struct cfi_place read_expression(const struct program *p, struct reader *r)
{
	const uint64_t bytes = read_unsigned(r);
	struct reader expression = *r;

	skip(r, bytes);
	if (r->bad)
		return (struct cfi_place){PLACE_UNKNOWN, 0, 0};
	expression.end = r->at;
	return incstack__cfi_evaluate(expression, p->address);
}

static void set_saved_at(struct program *p, uint64_t number, struct cfi_place place)
{
	struct saved *saved = saved_of(&p->state, number);

	if (saved)
		*saved = (struct saved){place.kind == PLACE_REGISTER ? AT_PLACE : OTHER,
					place.offset, place.number};
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
	p->state.cfa = (struct cfi_place){PLACE_REGISTER, number, offset};
	p->state.computed = false;
}

/* Multiplies two numbers of the table, which may be anything. */
static int64_t scaled(const struct program *p, struct reader *r, int64_t units)
{
	int64_t product;

	r->bad |= __builtin_mul_overflow(units, p->cie->data_unit, &product);
	return product;
}

/* Called before an instruction that changes only the register or only the offset of the CFA. The
 * instruction is refused if an expression computes the CFA, because unwinders do not agree on its
 * meaning then. */
static struct cfi_place *change_cfa(struct program *p, struct reader *r)
{
	r->bad |= p->state.computed;
	return &p->state.cfa;
}

/* Executes the instructions that define the CFA or advance the location. Returns false for any
 * other instruction. */
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
	case DEF_CFA_SIGNED:
		number = read_unsigned(r);
		set_cfa(p, number, scaled(p, r, read_signed(r)));
		return true;
	case DEF_CFA_REGISTER:
		change_cfa(p, r)->number = read_unsigned(r);
		return true;
	case DEF_CFA_OFFSET:
		change_cfa(p, r)->offset = (int64_t)read_unsigned(r);
		return true;
	case DEF_CFA_OFFSET_SIGNED:
		change_cfa(p, r)->offset = scaled(p, r, read_signed(r));
		return true;
	case DEF_CFA_EXPRESSION:
		p->state.cfa = read_expression(p, r);
		p->state.computed = true;
		return true;
	default:
		return false;
	}
}

/* Reads the number of a register. Refuses functions that save vector registers, as libunwind
 * does. */
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
		set_saved(p, number, AT_OFFSET, scaled(p, r, (int64_t)read_unsigned(r)));
		break;
	case OFFSET_EXTENDED_SIGNED:
		set_saved(p, number, AT_OFFSET, scaled(p, r, read_signed(r)));
		break;
	case RESTORE_EXTENDED:
		restore(p, number);
		break;
	case SAME_VALUE:
		set_saved(p, number, SAME, 0);
		break;
	case UNDEFINED:
		set_saved(p, number, NOWHERE, 0);
		break;
	case IN_REGISTER:
		(void)read_unsigned(r);
		set_saved(p, number, OTHER, 0);
		break;
	case EXPRESSION:
		set_saved_at(p, number, read_expression(p, r));
		break;
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
	else if (code >> 6 != 0 && operand > RA)
		r->bad = true;
	else if (code >> 6 == OFFSET)
		set_saved(p, operand, AT_OFFSET, scaled(p, r, (int64_t)read_unsigned(r)));
	else if (code >> 6 == RESTORE)
		restore(p, operand);
	else if (code == REMEMBER_STATE)
		remember(p, r);
	else if (code == RESTORE_STATE)
		recall(p, r);
	else if (code == ARGUMENTS_SIZE)
		(void)read_unsigned(r);
	else if (code != 0 && !execute_cfa(p, r, code))
		execute_saved(p, r, code);
}

/* Executes only the two instructions that most of a program consists of: a step to the next
 * location, and a new offset of the CFA in one byte. Stops at any other instruction, or behind the
 * address. Executes nothing else, so that the compiler keeps the state in registers. */
static const unsigned char *run_common(struct program *p, const unsigned char *at,
				       const unsigned char *end)
{
	const uint64_t unit = p->cie->code_unit;
	const uintptr_t address = p->address;
	uintptr_t here = p->at;

	while (at < end && here <= address) {
		if (*at >> 6 == ADVANCE) {
			here += (*at++ & 0x3f) * unit;
		} else if (*at == DEF_CFA_OFFSET && end - at > 1 && at[1] < 0x80 &&
			   !p->state.computed) {
			p->state.cfa.offset = at[1];
			at += 2;
		} else {
			break;
		}
	}
	p->at = here;
	return at;
}

static bool run(struct program *p, struct reader r)
{
	while (!r.bad && r.at < r.end && p->at <= p->address) {
		r.at = run_common(p, r.at, r.end);
		if (r.at < r.end && p->at <= p->address)
			execute(p, &r, (unsigned char)read_bytes(&r, 1));
	}
	return !r.bad;
}

/* ---- the rule -------------------------------------------------------------- */

/* The offset of an interrupted register from the stack pointer of the kernel's signal frame,
 * which points to the ucontext. */
#define SAVED(reg) ((int64_t)(offsetof(ucontext_t, uc_mcontext.gregs) + (reg) * sizeof(greg_t)))

/* Whether struct incstack_rule can hold the distance of a slot below the CFA. */
static bool fits(int64_t distance)
{
	return distance > 0 && distance <= UINT16_MAX && distance % 8 == 0;
}

/* Returns where a register is saved, as a distance below the CFA, or -1. A place also has such a
 * distance if it is relative to the register that the CFA is relative to. */
static int64_t below(const struct state *s, const struct saved *saved)
{
	int64_t distance = -1;

	if (saved->where == AT_OFFSET)
		distance = (int64_t)(-(uint64_t)saved->offset);
	else if (saved->where == AT_PLACE && s->cfa.kind == PLACE_REGISTER &&
		 saved->number == s->cfa.number)
		distance = (int64_t)((uint64_t)s->cfa.offset - (uint64_t)saved->offset);
	return fits(distance) ? distance : -1;
}

static bool is_at(const struct saved *saved, uint64_t number, int64_t offset)
{
	return saved->where == AT_PLACE && saved->number == number && saved->offset == offset;
}

static bool is_signal_frame(const struct state *s)
{
	return s->cfa.kind == PLACE_LOADED && s->cfa.number == SP &&
	       s->cfa.offset == SAVED(REG_RSP) && is_at(&s->sp, SP, SAVED(REG_RSP)) &&
	       is_at(&s->ra, SP, SAVED(REG_RIP)) && is_at(&s->fp, SP, SAVED(REG_RBP));
}

/* Makes the rule of a frame whose CFA is the stack or frame pointer plus an offset. */
static bool rule_from_register(const struct state *s, struct incstack_rule *rule)
{
	const bool has_fp = s->fp.where != SAME;
	const int64_t ra = below(s, &s->ra);
	const int64_t fp = has_fp ? below(s, &s->fp) : 0;

	if ((s->cfa.number != SP && s->cfa.number != FP) || ra < 0 || fp < 0 || s->cfa.offset < 0)
		return false;
	*rule = (struct incstack_rule){
		.kind = s->cfa.number == SP ? INCSTACK_RULE_SP : INCSTACK_RULE_FP,
		.cfa_offset = (int32_t)s->cfa.offset,
		.ra_offset = (uint16_t)ra,
		.fp_offset = (uint16_t)fp,
	};
	return true;
}

/* Makes the rule of a frame in which the CFA is stored. The return slot is relative to the CFA,
 * the saved frame pointer to the frame pointer. */
static bool rule_from_frame(const struct state *s, struct incstack_rule *rule)
{
	const int64_t ra = below(s, &s->ra);

	if (s->cfa.number != FP || ra < 0 || s->fp.where != AT_PLACE || s->fp.number != FP ||
	    (s->fp.offset != 0 && !fits((int64_t)(-(uint64_t)s->fp.offset))))
		return false;
	*rule = (struct incstack_rule){
		.kind = INCSTACK_RULE_FP_DEREF,
		.cfa_offset = (int32_t)s->cfa.offset,
		.ra_offset = (uint16_t)ra,
		.fp_offset = (uint16_t)-s->fp.offset,
	};
	return true;
}

static bool rule_of(const struct state *s, struct incstack_rule *rule)
{
	const int64_t offset = s->cfa.offset;

	if (s->ra.where == NOWHERE || is_signal_frame(s)) {
		*rule = (struct incstack_rule){
			.kind = s->ra.where == NOWHERE ? INCSTACK_RULE_END : INCSTACK_RULE_SIGNAL};
		return true;
	}
	if (s->sp.where != SAME || offset % 8 != 0 || offset < INT32_MIN || offset > INT32_MAX)
		return false;
	if (s->cfa.kind == PLACE_REGISTER)
		return rule_from_register(s, rule);
	return s->cfa.kind == PLACE_LOADED && rule_from_frame(s, rule);
}

static const unsigned char *cie_of(const struct reader *fde)
{
	uint32_t back;

	memcpy(&back, fde->at, sizeof(back));
	return back ? fde->at - back : NULL;
}

/* Does not clear the remembered states, because that would take longer than everything else
 * here. */
static void begin(struct program *p, const struct cie *cie, uintptr_t address)
{
	p->cie = cie;
	p->address = address;
	p->state = p->initial = (struct state){0};
	p->depth = 0;
	p->return_changes = false;
}

/* Reads the rule of the address. Returns false if the FDE does not contain the address or if its
 * rule is not understood. */
bool incstack__native_fde_rule(const void *fde, uintptr_t address, struct incstack_rule *rule)
{
	struct program p;
	struct reader r = open_entry(fde);
	const unsigned char *entry = r.bad ? NULL : cie_of(&r);
	struct cie cie;
	uintptr_t low;

	if (!entry || !read_cie(entry, &cie))
		return false;
	skip(&r, 4);
	begin(&p, &cie, address);
	p.at = low = read_encoded(&r, cie.encoding);
	if (address - low >= read_encoded(&r, cie.encoding & FORMAT & ~SIGNED))
		return false;
	if (cie.has_data)
		skip(&r, read_unsigned(&r));
	if (r.bad || !run(&p, cie.program))
		return false;
	p.initial = p.state;
	if (p.at != low || !run(&p, r) || !rule_of(&p.state, rule))
		return false;
	rule->flags |= p.return_changes ? (uint32_t)INCSTACK_RULE_RETURN_CHANGES : 0;
	return true;
}
