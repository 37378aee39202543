/* SPDX-License-Identifier: MIT
 *
 * Calls the kernel with the number and up to six arguments. Unlike libc's syscall, no library can replace
 * it, and it leaves errno alone: it returns the negated error.
 */
	.text
	.globl incstack__system_call
	.type incstack__system_call, @function
	.balign 16
incstack__system_call:
	.cfi_startproc
	movq %rdi, %rax
	movq %rsi, %rdi
	movq %rdx, %rsi
	movq %rcx, %rdx
	movq %r8, %r10
	movq %r9, %r8
	movq 8(%rsp), %r9
	syscall
	ret
	.cfi_endproc
	.size incstack__system_call, . - incstack__system_call

	.section .note.GNU-stack, "", @progbits
