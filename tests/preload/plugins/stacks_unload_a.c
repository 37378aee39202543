/* SPDX-License-Identifier: MIT
 *
 * A function with a small frame. Its twin has the same code with a frame of another size.
 */
#ifndef FRAME
#define FRAME "64"
#define NAME "visit_a"
#endif

__asm__(".globl " NAME "\n"
	".type " NAME ", @function\n" NAME ":\n"
	".cfi_startproc\n"
	"subq $" FRAME "+8, %rsp\n"
	".cfi_adjust_cfa_offset " FRAME "+8\n"
	"call *%rdi\n"
	"addq $" FRAME "+8, %rsp\n"
	".cfi_adjust_cfa_offset -" FRAME "-8\n"
	"ret\n"
	".cfi_endproc\n"
	".size " NAME ", . - " NAME "\n");
