/* SPDX-License-Identifier: MIT
 *
 * Samples whose top need not be given: it is the caller, or the code that a signal
 * interrupted.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <incstack/native.h>

#include "native/native.h"

__attribute__((noinline)) int incstack_stack_sample_native(struct incstack_stack *stack,
							   uint64_t id, uint64_t weight)
{
	const struct incstack_top top = incstack__native_caller_top(__builtin_frame_address(0));

	return incstack_stack_sample(stack, id, weight, &top);
}

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
	       incstack__page_readable(begin & ~(uintptr_t)4095) &&
	       ((begin ^ pc) < 4096 || incstack__page_readable(pc & ~(uintptr_t)4095)) &&
	       memcmp((const void *)begin, code, sizeof(code)) == 0;
}

/* No unwind rule can tell that a return address is in rdi, so in vfork the top is its caller's frame. */
struct incstack_top incstack__native_interrupted_top(const void *ucontext)
{
	const ucontext_t *context = ucontext;
	const greg_t *registers = context->uc_mcontext.gregs;
	const uintptr_t pc = (uintptr_t)registers[REG_RIP];

	return (struct incstack_top){
		.pc = is_in_vfork(registers) ? (uintptr_t)registers[REG_RDI] : pc,
		.sp = (uintptr_t)registers[REG_RSP],
		.fp = (uintptr_t)registers[REG_RBP],
		.flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_INTERRUPTED,
	};
}

int incstack_native_interrupted(void *context, const struct incstack_interruption *at,
				struct incstack_top *top)
{
	(void)context;
	if (!at || !at->ucontext || !top)
		return INCSTACK_EINVAL;
	*top = incstack__native_interrupted_top(at->ucontext);
	if (incstack__trampoline_contains(top->pc))
		return 1;
	return incstack__native_finds_in_handlers &&
	       incstack__native_is_described(incstack__native_find_rule_quickly,
					     (struct incstack__native_bounds){at->low, at->high},
					     top) == INCSTACK__NATIVE_DESCRIBED;
}

__attribute__((noinline)) int incstack_stack_queue_drain_native(struct incstack_stack *stack)
{
	const struct incstack_top top = incstack__native_caller_top(__builtin_frame_address(0));

	return incstack_stack_queue_drain(stack, &top);
}
