/* SPDX-License-Identifier: MIT
 *
 * The top of a sample or a walk: the caller, or the code that a signal interrupted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <incstack/native.h>

#include "native/native.h"

/* Whether vfork's system call ends before this instruction. Every signal that comes during the call is
 * delivered there. The child uses the stack, too, so libc's vfork has popped its return address into rdi
 * until then. Other system calls rarely have so large a number there, so the kernel is seldom asked whether
 * the code can be read. */
static bool is_in_vfork(const greg_t *registers)
{
	static const unsigned char code[] = {
		0x5f,                     /* pop %rdi */
		0xb8, SYS_vfork, 0, 0, 0, /* mov $SYS_vfork, %eax */
		0x0f, 0x05,               /* syscall */
		0x57,                     /* push %rdi */
	};
	const uintptr_t pc = (uintptr_t)registers[REG_RIP];
	const uintptr_t begin = pc - (sizeof(code) - 1);
	const uintptr_t lowest_code = (uintptr_t)1 << 22; /* and above all process ids */

	return (uintptr_t)registers[REG_RCX] == pc && /* so it is after every system call */
	       (uintptr_t)registers[REG_RDI] >= lowest_code &&
	       incstack__native_readable_once(begin, sizeof(code)) &&
	       memcmp((const void *)begin, code, sizeof(code)) == 0;
}

/* No unwind rule can tell that a return address is in rdi, so in vfork the top is its caller's frame. */
static struct incstack_top interrupted_top(const ucontext_t *context)
{
	const greg_t *registers = context->uc_mcontext.gregs;
	const uintptr_t pc = (uintptr_t)registers[REG_RIP];

	return (struct incstack_top){
		.pc = is_in_vfork(registers) ? (uintptr_t)registers[REG_RDI] : pc,
		.sp = (uintptr_t)registers[REG_RSP],
		.fp = (uintptr_t)registers[REG_RBP],
		.flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_INTERRUPTED,
	};
}

/* The compiler keeps a frame pointer in a function that asks for its frame address, whatever its options
 * are. The word there is the caller's frame pointer. The next word is the return address, and above it the
 * caller's frame begins. */
__attribute__((noinline)) struct incstack_top incstack_native_top(const void *ucontext)
{
	const uintptr_t *frame = __builtin_frame_address(0);

	if (ucontext)
		return interrupted_top(ucontext);
	return (struct incstack_top){
		.pc = frame[1],
		.sp = (uintptr_t)(frame + 2),
		.fp = frame[0],
	};
}

int incstack__native_interrupted(void *context, const struct incstack_interruption *at,
				 struct incstack_top *top)
{
	(void)context;
	if (!at || !at->ucontext || !top)
		return INCSTACK_EINVAL;
	*top = interrupted_top(at->ucontext);
	if (incstack__trampoline_contains(top->pc))
		return 1;
	return incstack__native_finds_in_handlers &&
	       incstack__native_is_described(incstack__native_find_rule_quickly,
					     (struct incstack__native_bounds){at->low, at->high},
					     top) == INCSTACK__NATIVE_DESCRIBED;
}
