/* SPDX-License-Identifier: MIT
 *
 * What is known of the code that a signal has interrupted; see interrupted.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "interrupted.h"

enum incstack__native_described
incstack__interrupted_is_described(const struct incstack__record *record,
				   const struct incstack_top *top)
{
	return incstack__native_is_described(
		incstack__record_find_rule,
		(struct incstack__native_bounds){record->low, record->high}, top);
}

/* The signal is delivered before the instruction behind the system call runs. */
int incstack__interrupted_failed_call(const ucontext_t *context)
{
	static const unsigned char instruction[] = {0x0f, 0x05}; /* syscall */
	const greg_t *registers = context->uc_mcontext.gregs;
	const uintptr_t call = (uintptr_t)registers[REG_RIP] - sizeof(instruction);
	const uintptr_t page = call & ~(uintptr_t)4095;

	return registers[REG_RAX] == -EINTR && page == ((call + 1) & ~(uintptr_t)4095) &&
	       incstack__page_readable(page) &&
	       memcmp((const void *)call, instruction, sizeof(instruction)) == 0;
}

static int is_in_own_stack(const struct incstack__record *record, uintptr_t sp)
{
	return sp >= record->low && sp < record->high;
}

/* The program may have left frames by a jump of its own since the last sample. A heap profile does
 * nothing if the thread runs on another stack, that of a coroutine or one for signals, because its
 * own stack does not change while it runs there. It does nothing either if the rules do not describe the
 * interrupted instruction, which may be one of the trampoline.
 *
 * Ticks also interrupt the unwinder of an exception. It passes by barriers in return slots that it
 * has read before, so the newest known frames may be gone. A CPU profile therefore forgets all
 * frames if the rules cannot tell which are left. */
void incstack__interrupted_settle(struct incstack__record *record)
{
	const struct incstack_top *top = &record->held_top;

	if (incstack__trampoline_contains(top->pc) ||
	    incstack__interrupted_is_described(record, top) != INCSTACK__NATIVE_DESCRIBED)
		top = NULL;
	if (incstack__record_is_cpu_profile() || (top != NULL && is_in_own_stack(record, top->sp)))
		incstack__stack_interrupted_at(record->stack, top);
}
