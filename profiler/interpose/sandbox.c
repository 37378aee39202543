/* SPDX-License-Identifier: MIT
 *
 * Interposes the calls with which a program forbids itself system calls or the time-stamp counter,
 * so that the recorder can prepare. Every other use of prctl and syscall is passed on by a jump, so
 * that the stub has no frame, because a new process may return from syscall on another stack.
 */
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stub.h"

__attribute__((visibility("hidden"))) void *_Atomic incstack__stub_prctl;
__attribute__((visibility("hidden"))) void *_Atomic incstack__stub_syscall;

__attribute__((constructor(101))) static void find_calls(void)
{
	incstack__stub_next(&incstack__stub_prctl, "prctl");
	incstack__stub_next(&incstack__stub_syscall, "syscall");
}

/* Called by the entries below. */
void incstack__stub_before_prctl(long option, long mode, const void *filter);
void incstack__stub_before_syscall(long number, long first, long second, const void *third);

static void announce(enum incstack__forbidden what, const void *filter)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder)
		recorder->on_forbid(what, filter);
}

/* Also called if the real functions were not found yet. */
void incstack__stub_before_prctl(long option, long mode, const void *filter)
{
	if (!incstack__stub_prctl)
		find_calls();
	if (option == PR_SET_SECCOMP && mode == SECCOMP_MODE_STRICT)
		announce(INCSTACK__FORBIDDEN_ALL_CALLS, NULL);
	else if (option == PR_SET_SECCOMP && mode == SECCOMP_MODE_FILTER)
		announce(INCSTACK__FORBIDDEN_SOME_CALLS, filter);
	else if (option == PR_SET_TSC && mode == PR_TSC_SIGSEGV)
		announce(INCSTACK__FORBIDDEN_CLOCK, NULL);
}

void incstack__stub_before_syscall(long number, long first, long second, const void *third)
{
	(void)second; /* the flags of seccomp */
	if (!incstack__stub_syscall)
		find_calls();
	if (number == SYS_seccomp && first == SECCOMP_SET_MODE_STRICT)
		announce(INCSTACK__FORBIDDEN_ALL_CALLS, NULL);
	else if (number == SYS_seccomp && first == SECCOMP_SET_MODE_FILTER)
		announce(INCSTACK__FORBIDDEN_SOME_CALLS, third);
	else if (number == SYS_prctl)
		incstack__stub_before_prctl(first, second, third);
}

/* Defines the entry `name`. It calls the recorder for two values of the first argument, and calls
 * the function above for every value before the real function is known. It preserves all argument
 * registers. */
#define ENTRY(name, one, other) \
	__asm__(".pushsection .text\n" \
		".globl " #name "\n" \
		".type " #name ", @function\n" \
		".p2align 4\n" #name ":\n" \
		".cfi_startproc\n" \
		"cmpl $" #one ", %edi\n" \
		"je 1f\n" \
		"cmpl $" #other ", %edi\n" \
		"je 1f\n" \
		"cmpq $0, incstack__stub_" #name "(%rip)\n" \
		"je 1f\n" \
		"jmp *incstack__stub_" #name "(%rip)\n" \
		"1:\n" \
		"pushq %rbp\n" \
		".cfi_def_cfa_offset 16\n" \
		".cfi_offset %rbp, -16\n" \
		"movq %rsp, %rbp\n" \
		".cfi_def_cfa_register %rbp\n" \
		"pushq %rax\n" \
		"pushq %rdi\n" \
		"pushq %rsi\n" \
		"pushq %rdx\n" \
		"pushq %rcx\n" \
		"pushq %r8\n" \
		"pushq %r9\n" \
		"andq $-16, %rsp\n" \
		"call incstack__stub_before_" #name "\n" \
		"leaq -56(%rbp), %rsp\n" \
		"popq %r9\n" \
		"popq %r8\n" \
		"popq %rcx\n" \
		"popq %rdx\n" \
		"popq %rsi\n" \
		"popq %rdi\n" \
		"popq %rax\n" \
		"popq %rbp\n" \
		".cfi_def_cfa %rsp, 8\n" \
		"jmp *incstack__stub_" #name "(%rip)\n" \
		".cfi_endproc\n" \
		".size " #name ", . - " #name "\n" \
		".popsection\n");
ENTRY(prctl, 22, 26)
ENTRY(syscall, 317, 157)
_Static_assert(PR_SET_SECCOMP == 22 && PR_SET_TSC == 26, "prctl");
_Static_assert(SYS_seccomp == 317 && SYS_prctl == 157, "syscall");
