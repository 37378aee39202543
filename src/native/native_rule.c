/* SPDX-License-Identifier: MIT
 *
 * Finds the unwind rule of an address: first in .eh_frame (cfi.c), else by libunwind. libunwind
 * has no function that returns a rule. So it is made to execute one unw_step in an address
 * space with a fictitious stack: the registers are sentinels, and each read from the stack
 * returns a sentinel that encodes the address that was read. The rule can be read from the
 * registers after the step.
 *
 * A sentinel is a zone and an offset. Zones are in non-canonical addresses, so no sentinel can
 * be taken for the address of code or of a table, which are the only real memory that is read.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include <libunwind.h>

#include <incstack/native.h>

#include "native.h"

enum {
	ZONE_NONE = 0,
	ZONE_SP = 1,
	ZONE_FP = 2,
	ZONE_OTHER = 3, /* every other register; no rule may use it */
	/* A read in a zone returns a sentinel that is this many zones higher. */
	ZONE_LOADED = 4,
	ZONE_LIMIT = 16,
};

#define ZONE_SHIFT 48
#define ZONE_CENTRE (UINT64_C(1) << 40)
#define ZONE_RADIUS (INT64_C(1) << 32)
#define CANONICAL_LIMIT (UINT64_C(1) << 47)

/* The offset of an interrupted register from the stack pointer of the kernel's
 * signal frame, which points to the ucontext. */
#define SAVED(reg) ((int64_t)(offsetof(ucontext_t, uc_mcontext.gregs) + (reg) * sizeof(greg_t)))

struct place {
	unsigned zone;
	int64_t offset;
};

struct lookup {
	uintptr_t address;
	bool found; /* whether a table has the address; before that no memory is readable */
	struct incstack__native_pages pages;
};

static unw_word_t place_encode(unsigned zone, int64_t offset)
{
	return ((uint64_t)zone << ZONE_SHIFT) + ZONE_CENTRE + (uint64_t)offset;
}

static struct place place_decode(unw_word_t value)
{
	struct place place = {ZONE_NONE, 0};
	uint64_t zone = value >> ZONE_SHIFT;
	int64_t offset = (int64_t)(value - ((zone << ZONE_SHIFT) + ZONE_CENTRE));

	if (zone == 0 || zone >= ZONE_LIMIT || offset < -ZONE_RADIUS || offset > ZONE_RADIUS)
		return place;
	place.zone = (unsigned)zone;
	place.offset = offset;
	return place;
}

/* ---- the address space ------------------------------------------------------ */

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need,
			  void *arg)
{
	struct lookup *lookup = arg;
	unw_accessors_t *local = unw_get_accessors(unw_local_addr_space);
	int result;

	(void)space;
	/* Only the address of the look-up is answered. If a step adjusted it or went on to
	 * another frame, the answer would describe something else. */
	if (ip != lookup->address)
		return -UNW_ENOINFO;
	result = local->find_proc_info(unw_local_addr_space, ip, info, need, NULL);
	lookup->found = result >= 0;
	return result;
}

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write,
		      void *arg)
{
	struct lookup *lookup = arg;
	struct place place = place_decode(address);

	(void)space;
	/* Without a table libunwind guesses from the bytes at the pc and from the frame pointer.
	 * A refused read prevents that. */
	if (write || !lookup->found)
		return -UNW_EINVAL;
	if (place.zone != ZONE_NONE && place.zone + ZONE_LOADED < ZONE_LIMIT) {
		*value = place_encode(place.zone + ZONE_LOADED, place.offset);
		return 0;
	}
	/* Real memory: unwind tables, and what an expression in one points to. */
	if (address >= CANONICAL_LIMIT || address % sizeof(uintptr_t) != 0 ||
	    !incstack__native_pages_readable(&lookup->pages, address))
		return -UNW_EINVAL;
	memcpy(value, (const void *)address, sizeof(*value));
	return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int write,
		      void *arg)
{
	const struct lookup *lookup = arg;

	(void)space;
	if (write)
		return -UNW_EREADONLYREG;
	if (reg == UNW_X86_64_RIP)
		*value = lookup->address;
	else if (reg == UNW_X86_64_RSP)
		*value = place_encode(ZONE_SP, 0);
	else if (reg == UNW_X86_64_RBP)
		*value = place_encode(ZONE_FP, 0);
	else
		*value = place_encode(ZONE_OTHER, 0);
	return 0;
}

/* The process needs only one: it caches nothing and so holds no state of a look-up (the core
 * caches rules). It is never freed, because the program may ask for a rule at any time. */
static unw_addr_space_t shared_space;

unw_addr_space_t incstack__native_space(void)
{
	const unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.access_mem = access_mem,
		.access_reg = access_reg,
	};

	return incstack__native_space_make(&shared_space, accessors, UNW_CACHE_NONE);
}

/* ---- from registers to a rule ------------------------------------------------ */

struct step {
	struct place cfa;
	struct place pc; /* the caller's pc: a sentinel that says where it was loaded from */
	struct place fp;
};

static bool offset_fits(int64_t offset)
{
	return offset >= INT32_MIN && offset <= INT32_MAX && offset % 8 == 0;
}

/* Whether struct incstack_rule can hold the distance of a slot below the CFA. */
static bool slot_fits(int64_t distance)
{
	return distance > 0 && distance <= UINT16_MAX && distance % 8 == 0;
}

/* Whether the step was that of the kernel's signal frame. It is recognized not by its name or its
 * bytes, but because it loads all registers from a ucontext at the stack pointer. */
static bool step_is_signal(const struct step *step)
{
	const unsigned zone = ZONE_SP + ZONE_LOADED;

	return step->cfa.zone == zone && step->cfa.offset == SAVED(REG_RSP) &&
	       step->pc.zone == zone && step->pc.offset == SAVED(REG_RIP) &&
	       step->fp.zone == zone && step->fp.offset == SAVED(REG_RBP);
}

static int set_offsets(const struct step *step, unsigned base, struct incstack_rule *rule)
{
	int64_t ra = step->cfa.offset - step->pc.offset;
	int64_t fp = step->cfa.offset - step->fp.offset;

	if (step->pc.zone != base + ZONE_LOADED || !offset_fits(step->cfa.offset) || !slot_fits(ra))
		return INCSTACK_EUNWIND;
	rule->cfa_offset = (int32_t)step->cfa.offset;
	rule->ra_offset = (uint16_t)ra;
	if (step->fp.zone == ZONE_FP && step->fp.offset == 0)
		return 0;
	if (step->fp.zone != base + ZONE_LOADED || !slot_fits(fp))
		return INCSTACK_EUNWIND;
	rule->fp_offset = (uint16_t)fp;
	return 0;
}

/* Makes a rule with CFA = *(fp + offset). The return slot is relative to the CFA, the saved frame
 * pointer to the frame pointer. */
static int set_deref(const struct step *step, struct incstack_rule *rule)
{
	const unsigned loaded = ZONE_FP + ZONE_LOADED;
	int64_t ra = step->cfa.offset - step->pc.offset;
	int64_t fp = -step->fp.offset;

	if (step->pc.zone != loaded + ZONE_LOADED || !offset_fits(step->cfa.offset) ||
	    !slot_fits(ra))
		return INCSTACK_EUNWIND;
	if (step->fp.zone != loaded || (fp != 0 && !slot_fits(fp)))
		return INCSTACK_EUNWIND;
	rule->kind = INCSTACK_RULE_FP_DEREF;
	rule->cfa_offset = (int32_t)step->cfa.offset;
	rule->ra_offset = (uint16_t)ra;
	rule->fp_offset = (uint16_t)fp;
	return 0;
}

static int rule_from_step(const struct step *step, struct incstack_rule *rule)
{
	if (step_is_signal(step)) {
		rule->kind = INCSTACK_RULE_SIGNAL;
		return 0;
	}
	switch (step->cfa.zone) {
	case ZONE_SP:
		rule->kind = INCSTACK_RULE_SP;
		return set_offsets(step, ZONE_SP, rule);
	case ZONE_FP:
		rule->kind = INCSTACK_RULE_FP;
		return set_offsets(step, ZONE_FP, rule);
	case ZONE_FP + ZONE_LOADED:
		return set_deref(step, rule);
	default:
		return INCSTACK_EUNWIND;
	}
}

static int read_step(unw_cursor_t *cursor, struct step *step)
{
	unw_word_t cfa;
	unw_word_t pc;
	unw_word_t fp;

	if (unw_get_reg(cursor, UNW_REG_SP, &cfa) < 0 || unw_get_reg(cursor, UNW_REG_IP, &pc) < 0 ||
	    unw_get_reg(cursor, UNW_X86_64_RBP, &fp) < 0)
		return INCSTACK_EUNWIND;
	step->cfa = place_decode(cfa);
	step->pc = place_decode(pc);
	step->fp = place_decode(fp);
	return 0;
}

static int find_rule(unw_addr_space_t space, struct lookup *lookup, struct incstack_rule *rule)
{
	unw_cursor_t cursor;
	unw_save_loc_t pc;
	struct step step;
	int more;

	if (unw_init_remote(&cursor, space, lookup) < 0)
		return INCSTACK_EUNWIND;
	more = unw_step(&cursor);
	if (!lookup->found || more < 0)
		return INCSTACK_EUNWIND;
	/* Sentinels are never 0, so the step ends the walk only if the rule says that the return
	 * address is undefined. libunwind also ends it if the frame pointer is undefined, but
	 * such a frame has a caller, so it is refused. */
	if (more == 0) {
		if (unw_get_save_loc(&cursor, UNW_X86_64_RIP, &pc) < 0 || pc.type != UNW_SLT_NONE)
			return INCSTACK_EUNWIND;
		rule->kind = INCSTACK_RULE_END;
		return 0;
	}
	if (read_step(&cursor, &step) < 0)
		return INCSTACK_EUNWIND;
	return rule_from_step(&step, rule);
}

int incstack__native_libunwind_rule(unw_addr_space_t space, uintptr_t address,
				    struct incstack_rule *rule)
{
	struct lookup lookup = {.address = address};
	struct incstack_rule found = {0};
	const int result = find_rule(space, &lookup, &found);

	if (result == 0)
		*rule = found;
	return result;
}

/* ---- the embedder's callbacks -------------------------------------------------- */

int incstack__native_find_rule_quickly(void *context, uintptr_t address, struct incstack_rule *rule)
{
	(void)context;
	if (!incstack__native_is_context_base(address)) {
		if (incstack__native_cfi_rule(address, rule))
			return 0;
		if (!incstack__native_is_fiber_base(address))
			return INCSTACK_EUNWIND;
	}
	*rule = (struct incstack_rule){.kind = INCSTACK_RULE_END};
	return 0;
}

int incstack__native_find_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	unw_addr_space_t space;

	if (!rule)
		return INCSTACK_EINVAL;
	if (address == 0 || address >= CANONICAL_LIMIT)
		return INCSTACK_EUNWIND;
	space = incstack__native_space();
	if (!space)
		return INCSTACK_ENOMEM;
	if (incstack__native_find_rule_quickly(context, address, rule) == 0)
		return 0;
	return incstack__native_libunwind_rule(space, address, rule);
}
