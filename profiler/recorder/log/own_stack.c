/* SPDX-License-Identifier: MIT
 *
 * A stack of the recorder for each thread of a CPU profile, and for the walks of --crosscheck. The
 * program's stack may be too small for them (D62). No jump leaves the recorder's stack, because signals
 * are blocked while it is in use. It is never used twice at a time, because a tick that interrupts the
 * recorder is not sampled.
 */
#include "own_stack.h"
#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/log/log.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

/* The deepest use that was seen is 5 KiB; it is 21 KiB with a walk by libunwind. */
enum { OWN_STACK_BYTES = 64 << 10 };

/* Calls function(argument) on another stack. An unwinder finds the caller by the frame pointer. */
void incstack__call_on_stack(void (*function)(void *), void *argument, void *stack_end);
__asm__(".pushsection .text, \"ax\", @progbits\n"
	".hidden incstack__call_on_stack\n"
	".globl incstack__call_on_stack\n"
	".type incstack__call_on_stack, @function\n"
	"incstack__call_on_stack:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset rbp, -16\n"
	"	movq %rsp, %rbp\n"
	"	.cfi_def_cfa_register rbp\n"
	"	movq %rdx, %rsp\n"
	"	movq %rdi, %rax\n"
	"	movq %rsi, %rdi\n"
	"	callq *%rax\n"
	"	movq %rbp, %rsp\n"
	"	popq %rbp\n"
	"	.cfi_def_cfa rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size incstack__call_on_stack, . - incstack__call_on_stack\n"
	".popsection\n");

int incstack__own_stack_make(struct incstack__record *record)
{
	record->own_stack = incstack__record_map(OWN_STACK_BYTES);
	return record->own_stack ? 0 : INCSTACK_ENOMEM;
}

void incstack__own_stack_release(struct incstack__record *record)
{
	incstack__record_unmap(record->own_stack, OWN_STACK_BYTES);
	record->own_stack = NULL;
}

void incstack__own_stack_run(const struct incstack__record *record, void (*function)(void *),
			     void *argument)
{
	incstack__call_on_stack(function, argument, record->own_stack + OWN_STACK_BYTES);
}

struct incstack__place incstack__place_of_caller(const struct incstack__record *record,
						 const stack_t *of_signals)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	const uintptr_t low = (uintptr_t)of_signals->ss_sp;

	if (here - low < of_signals->ss_size)
		return (struct incstack__place){INCSTACK__ON_SIGNAL_STACK, here - low};
	if (here - record->low < record->high - record->low)
		return (struct incstack__place){INCSTACK__ON_THREAD_STACK, here - record->low};
	return (struct incstack__place){INCSTACK__ON_OTHER_STACK, 0};
}
