/* SPDX-License-Identifier: MIT
 *
 * Whether the unwind rules describe the code that a signal has interrupted. The return addresses of the
 * interrupted frame and of its caller must each stand behind a call (D63), and neither frame may belong
 * to a function of an unwinder or to a function that it calls (D64).
 */
#include <stddef.h>

#include <incstack/incstack.h>

#include "frame_pointer.h"
#include "native.h"
#include "trace/step.h"

typedef uintptr_t any_word __attribute__((aligned(1), may_alias));

/* If the frame is outside of the bounds of the stack, the kernel is asked. */
static bool is_readable(const struct incstack__native_bounds *stack, const struct cursor *at,
			uintptr_t address)
{
	const uintptr_t last = address + sizeof(uintptr_t) - 1;

	if (at->sp >= stack->low && at->sp < stack->high)
		return address >= stack->low && last < stack->high && last > address;
	return incstack__native_readable_once(address, sizeof(uintptr_t));
}

static bool read_word(const void *stack, const struct cursor *at, uintptr_t address,
		      uintptr_t *word)
{
	if (!is_readable(stack, at, address))
		return false;
	*word = *(const volatile any_word *)address;
	return true;
}

/* The length of an indirect call with this ModRM byte and the byte behind it. */
static size_t indirect_length(unsigned char modrm, unsigned char sib)
{
	static const size_t displacement[] = {0, 1, 4};
	const unsigned mode = modrm >> 6;
	const unsigned base = modrm & 7;

	if (mode == 3)
		return 2;
	if (mode == 0 && base == 5)
		return 6;
	if (base == 4)
		return 3 + (mode == 0 && (sib & 7) == 5 ? 4 : displacement[mode]);
	return 2 + displacement[mode];
}

enum { LONGEST = 7, DIRECT = 5, DIRECT_OPCODE = 0xe8, INDIRECT_OPCODE = 0xff };

bool incstack__native_follows_call(uintptr_t pc)
{
	const unsigned char *end = (const unsigned char *)pc;

	if (end[-DIRECT] == DIRECT_OPCODE)
		return true;
	for (size_t length = 2; length <= LONGEST; length++) {
		const unsigned char *at = end - length;

		if (at[0] == INDIRECT_OPCODE && (at[1] >> 3 & 7) == 2 &&
		    indirect_length(at[1], length > 2 ? at[2] : 0) == length)
			return true;
	}
	return false;
}

/* Whether control may return to pc: pc stands behind a call, or in a frame that is entered without
 * one: the kernel's signal frame, or the outermost frame of a context. Code that no table describes may be
 * made at run time, and another thread may unmap it, so the kernel copies it. */
static bool is_return_address(incstack__native_find *find, uintptr_t pc)
{
	struct incstack_rule rule;

	if (find(NULL, pc - 1, &rule) != 0 || rule.flags & INCSTACK_RULE_BY_POINTER)
		return incstack__native_copied_follows_call(pc);
	return rule.kind == INCSTACK_RULE_SIGNAL || rule.kind == INCSTACK_RULE_END ||
	       incstack__native_follows_call(pc);
}

enum incstack__native_described incstack__native_is_described(incstack__native_find *find,
							      struct incstack__native_bounds stack,
							      const struct incstack_top *top)
{
	enum { FRAMES = 2 };
	struct cursor at = {.pc = top->pc, .sp = top->sp, .fp = top->fp, .exact = true};
	struct incstack_rule rule;
	enum step step;
	uintptr_t slot;

	for (int i = 0; i < FRAMES; i++) {
		if (find(NULL, at.pc - (i != 0), &rule) != 0)
			return i == 0 ? INCSTACK__NATIVE_NO_RULE : INCSTACK__NATIVE_DESCRIBED;
		if (rule.kind == INCSTACK_RULE_SIGNAL || rule.kind == INCSTACK_RULE_END ||
		    rule.flags & INCSTACK_RULE_BY_POINTER) /* the walk checks its own steps */
			return INCSTACK__NATIVE_DESCRIBED;
		if (rule.flags & INCSTACK_RULE_RETURN_CHANGES)
			return INCSTACK__NATIVE_INEXACT;
		step = step_by_rule(read_word, &stack, &at, &rule, &slot);
		if (step != STEP_FRAME)
			return step == STEP_END ? INCSTACK__NATIVE_DESCRIBED
						: INCSTACK__NATIVE_INEXACT;
		at.pc = incstack_slot_read(&at.pc);
		if (!is_return_address(find, at.pc))
			return INCSTACK__NATIVE_INEXACT;
	}
	return INCSTACK__NATIVE_DESCRIBED;
}
