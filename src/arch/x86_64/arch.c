/* SPDX-License-Identifier: MIT
 *
 * What the core must know about x86-64 and Linux besides the trampoline: the size of
 * the vector state, whether the hardware keeps a shadow stack, where the kernel
 * saves the registers of an interrupted frame, and what the trampoline has done
 * to the stack at each of its instructions.
 */
#include <cpuid.h>
#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "arch/arch.h"
#include "trace/shared.h"

_Atomic uintptr_t incstack__landing_resume[INCSTACK__LANDINGS];

/* Each cpuid is an exit to the hypervisor in a virtual machine, so this makes two only: all x86-64
 * processors have leaf 1, and those with OSXSAVE have leaf 13. */
size_t incstack__xsave_bytes(void)
{
	unsigned a, b, c, d;
	__cpuid(1, a, b, c, d);
	if (!(c & bit_OSXSAVE))
		return 0;
	__cpuid_count(13, 0, a, b, c, d);
	return b;
}

/* ARCH_SHSTK_STATUS fails if the kernel or the processor has no shadow stacks. */
bool incstack__shadow_stack_on(void)
{
	enum { SHSTK_STATUS = 0x5005, SHSTK_ENABLED = 1 };
	unsigned long features = 0;
	return incstack__system_call(SYS_arch_prctl, SHSTK_STATUS, &features) == 0 &&
	       features & SHSTK_ENABLED;
}

/* rt_sigprocmask reads the new mask before it checks its first argument. With an invalid first
 * argument it always fails, without a side effect, and the error tells whether the mask could
 * be read. */
bool incstack__page_readable(uintptr_t address)
{
	enum { NO_SUCH_CHANGE = 99 };
	return incstack__system_call(SYS_rt_sigprocmask, NO_SUCH_CHANGE, address, NULL,
				     sizeof(uint64_t)) == -EINVAL;
}

#define SAVED(reg) (offsetof(ucontext_t, uc_mcontext.gregs) + (reg) * sizeof(greg_t))
_Static_assert(SAVED(REG_RBP) == INCSTACK__SIGNAL_FP, "see layout.h");
_Static_assert(SAVED(REG_RSP) == INCSTACK__SIGNAL_SP, "see layout.h");
_Static_assert(SAVED(REG_RIP) == INCSTACK__SIGNAL_PC, "see layout.h");

/* On a landing pad, the slot is restored already, or the return address is still in a register
 * that the cursor does not have; the caller's pc is then set to 0. */
static bool landing_state(const struct cursor *at, struct cursor *caller)
{
	uintptr_t offset = at->pc - (uintptr_t)incstack__thunk_landing;
	if (offset >= INCSTACK__LANDINGS * INCSTACK__LANDING_SIZE ||
	    offset % INCSTACK__LANDING_SIZE > INCSTACK__LANDING_LAST)
		return false;
	bool pushed = offset % INCSTACK__LANDING_SIZE >= INCSTACK__LANDING_PUSHED;
	caller->pc = pushed ? *(const uintptr_t *)at->sp : 0;
	caller->sp = at->sp + (pushed ? 8 : 0);
	return true;
}

/* The pc in the first pool that corresponds to *at, and the pool of *at. */
static uintptr_t pc_in_first_pool(const struct cursor *at, const char **pool)
{
	uintptr_t offset;
	*pool = incstack__thunk_entry;
	if (!in_later_pool(at->pc, &offset))
		return at->pc;
	*pool = (const char *)(at->pc - offset % INCSTACK__POOL_STRIDE);
	return (uintptr_t)incstack__thunk_entry + offset % INCSTACK__POOL_STRIDE;
}

static bool in_entry(uintptr_t pc)
{
	return pc >= (uintptr_t)incstack__thunk_entry && pc <= (uintptr_t)incstack__thunk_entry_5;
}

/* In the course of the entry, S is rsp + 0, rsp + 8, rsp + 16, then rbp + 16, and back again
 * (thunks.S). */
static uintptr_t entry_s(const struct cursor *at, uintptr_t pc)
{
	if (pc >= (uintptr_t)incstack__thunk_entry_3 && pc < (uintptr_t)incstack__thunk_entry_4)
		return at->fp + 16;
	if (pc == (uintptr_t)incstack__thunk_entry_2)
		return at->sp + 16;
	if (pc == (uintptr_t)incstack__thunk_entry_1 || pc == (uintptr_t)incstack__thunk_entry_4)
		return at->sp + 8;
	return at->sp;
}

/* The first of the two words that incstack__entry_state may read. */
uintptr_t incstack__entry_reads(const struct cursor *at)
{
	const char *pool;
	uintptr_t pc = pc_in_first_pool(at, &pool);
	return in_entry(pc) ? entry_s(at, pc) - 16 : at->sp;
}

/* If *at is in the common entry, sets *caller to the frame that runs next. */
bool incstack__entry_state(const struct cursor *at, struct cursor *caller)
{
	const char *pool;
	uintptr_t pc = pc_in_first_pool(at, &pool);
	if (!in_entry(pc))
		return landing_state(at, caller);
	uintptr_t s = entry_s(at, pc);
	caller->sp = s;
	caller->pc = *(uintptr_t *)(s - 8);
	if (caller->pc < INCSTACK__POOL_BYTES) /* still the offset of the cell */
		caller->pc =
			thunk_cell((uintptr_t)pool + INCSTACK__ENTRY_BYTES + caller->pc)->resume;
	if (pc >= (uintptr_t)incstack__thunk_entry_2 && pc < (uintptr_t)incstack__thunk_entry_4)
		caller->fp = *(uintptr_t *)(s - 16);
	return true;
}

/* Whether the pc is in a thunk or in the trampoline. */
int incstack__thunk_contains(uintptr_t pc)
{
	uintptr_t offset = pc - (uintptr_t)incstack__thunk_entry, later;
	if (in_later_pool(pc, &later))
		offset = later % INCSTACK__POOL_STRIDE;
	return offset < INCSTACK__ENTRY_BYTES + INCSTACK__POOL_BYTES;
}

/* Also true in the landing pads. A sample of interrupted code must not begin at such a pc. */
int incstack__trampoline_contains(uintptr_t pc)
{
	return incstack__thunk_contains(pc) || pc - (uintptr_t)incstack__thunk_landing <
						       INCSTACK__LANDINGS * INCSTACK__LANDING_SIZE;
}
