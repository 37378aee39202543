/* SPDX-License-Identifier: MIT
 *
 * Interposes functions that read the return address into their caller, or walk its stack, by jumps
 * (D49). Each entry preserves all arguments,
 * gets the address of the real function from entries.c, and jumps there. The stack and the
 * return address are as the caller left them, except that our thunks are removed.
 */
	.macro ENTRY name, number
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	endbr64
	movl $\number, %eax
	jmp incstack__stub_enter
	.cfi_endproc
	.size \name, . - \name
	.balign 16, 0xcc
	.endm

	.text
	.balign 16
	/* entries.c has the same numbers in its table. */
	ENTRY dlopen, 0
	ENTRY dlmopen, 1
	ENTRY dlsym, 2
	ENTRY dlvsym, 3
	ENTRY backtrace, 4
	ENTRY _Unwind_Backtrace, 5
	ENTRY unw_backtrace, 6
	ENTRY _Ux86_64_getcontext, 7
	ENTRY unw_getcontext, 8

	.type incstack__stub_enter, @function
incstack__stub_enter:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register rbp
	pushq %rdi
	pushq %rsi
	pushq %rdx
	pushq %rcx
	pushq %r8
	pushq %r9
	leaq 8(%rbp), %rdi		/* 1: the slot of the return address */
	movl %eax, %esi			/* 2: the number of the function */
	andq $-16, %rsp			/* the caller's stack may be 8 bytes off */
	call incstack__stub_entered
	leaq -48(%rbp), %rsp
	movq %rax, %r11
	popq %r9
	popq %r8
	popq %rcx
	popq %rdx
	popq %rsi
	popq %rdi
	popq %rbp
	.cfi_restore rbp
	.cfi_def_cfa rsp, 8
	jmp *%r11
	.cfi_endproc
	.size incstack__stub_enter, . - incstack__stub_enter

	.section .note.GNU-stack, "", @progbits
