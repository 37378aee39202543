/* SPDX-License-Identifier: MIT
 *
 * Recognizes outermost frames of coroutines that no unwind table describes: the code to which
 * the function of a makecontext context, or of a Boost.Context fiber, returns. Each is
 * recognized exactly, by its address or by its instructions, because any other code without a
 * table may have callers.
 */
#include <ucontext.h>

#include "native.h"

/* ---- contexts of libc -------------------------------------------------------------- */

static void nothing(void)
{
}

/* Makes a context that never runs, to learn the address from it. */
static uintptr_t learn_context_base(void)
{
	uintptr_t stack[64];
	ucontext_t context;

	if (getcontext(&context) != 0)
		return 0;
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = sizeof(stack);
	context.uc_link = NULL;
	makecontext(&context, nothing, 0);
	return *(uintptr_t *)context.uc_mcontext.gregs[REG_RSP];
}

bool incstack__native_is_context_base(uintptr_t address)
{
	static uintptr_t context_base;
	uintptr_t base = __atomic_load_n(&context_base, __ATOMIC_RELAXED);

	if (!base) {
		base = learn_context_base();
		__atomic_store_n(&context_base, base, __ATOMIC_RELAXED);
	}
	return address + 1 == base;
}

/* ---- fibers of Boost.Context, which PHP and others have copied ---------------------------- */

/* The return address of a fiber's function is right behind the code that starts the function. No
 * call has pushed it. The code there ends the process. */
static const unsigned char starts[] = {
	0x55,       /* push %rbp, which holds the return address */
	0xff, 0xe3, /* jmp *%rbx, the fiber's function */
};
static const unsigned char finishes[] = {
	0x48, 0x31, 0xff, /* xor %rdi, %rdi */
	0xe8,             /* call _exit, with a four-byte displacement */
};
static const unsigned char halt[] = {0xf4};
enum { CALL_BYTES = 4 };
enum { FINISH_BYTES = sizeof(finishes) + CALL_BYTES + sizeof(halt) };

/* memcmp is not used, because the thread sanitizer checks what it reads, and has no record of
 * reads in its own code. */
__attribute__((no_sanitize("address", "thread"))) static bool
matches(const unsigned char *code, const unsigned char *bytes, size_t count)
{
	size_t i = 0;

	while (i < count && ((const volatile unsigned char *)code)[i] == bytes[i])
		i++;
	return i == count;
}

bool incstack__native_is_fiber_base(uintptr_t address)
{
	const uintptr_t pc = address + 1;
	const uintptr_t low = pc - sizeof(starts);
	const unsigned char *code = (const unsigned char *)low;
	struct incstack__native_index index;

	if (!incstack__native_find_index(address, &index) || low < index.low ||
	    pc + FINISH_BYTES > index.high ||
	    !incstack__native_readable_once(low, sizeof(starts) + FINISH_BYTES))
		return false;
	return matches(code, starts, sizeof(starts)) &&
	       matches(code + sizeof(starts), finishes, sizeof(finishes)) &&
	       matches(code + sizeof(starts) + FINISH_BYTES - sizeof(halt), halt, sizeof(halt));
}
