/* SPDX-License-Identifier: MIT
 *
 * The return trampoline: a pool of thunks, one per return barrier, the common
 * entry that they share, and the cells that hold the original addresses.
 *
 *   incstack__thunk_entry    + 0      common entry (256 bytes at most), padding
 *   incstack__thunks         + 4096   INCSTACK__THUNK_COUNT thunks of 16 bytes
 *   incstack__thunk_cells    + 65536  their cells: { resume address, stack }
 *
 * pool.c copies the entry and the thunks byte by byte, so they must be position-independent.
 *
 * The distances are constants, so plain CFI expressions find the cell of a thunk from its pc,
 * and every DWARF unwinder can walk through a thunk. A backtrace shows one line for each
 * barrier. The cells are made writable and not executable at start. The CFA of a thunk is S,
 * its caller's stack pointer, because libunwind takes the CFA for the caller's rsp whatever
 * rule rsp has.
 *
 * A patched frame returns to a thunk with rsp = S, one word above its slot. The word below rsp
 * (the slot, or dead memory) first carries the offset of the cell, then the resume address.
 * The trampoline may use that memory: the red zone of S is dead at a return, and signal
 * handlers stay below it. The trampoline changes no register, and no flag that the caller
 * could notice, because -fipa-ra may keep values in caller-saved registers.
 */
#include "layout.h"

#define POOL INCSTACK__POOL_BYTES
#define ENTRY INCSTACK__ENTRY_BYTES
#define CELLS_FROM_ENTRY (ENTRY + POOL)

	.section .text.incstack_thunks, "ax", @progbits
	.balign 4096
	.globl incstack__thunk_entry
	.hidden incstack__thunk_entry
	.type incstack__thunk_entry, @function
incstack__thunk_entry:
	.cfi_startproc
	.cfi_def_cfa rsp, 0
	/* return address = *(cells + *(CFA - 8)), cells = (pc & -256) + constant */
	.cfi_escape 0x16, 16, 18, 0x09, 0xf8, 0x22, 0x06, 0x80, 0, 0x0b, 0x00, 0xff, 0x1a, 0x22, \
		0x0c, CELLS_FROM_ENTRY & 255, (CELLS_FROM_ENTRY >> 8) & 255, \
		(CELLS_FROM_ENTRY >> 16) & 255, CELLS_FROM_ENTRY >> 24, 0x22, 0x06
	leaq -8(%rsp), %rsp		/* rsp = S - 8 */
	.cfi_def_cfa_offset 8
	.globl incstack__thunk_entry_1
	.hidden incstack__thunk_entry_1
incstack__thunk_entry_1:
	pushq %rbp			/* rsp = S - 16 */
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	.globl incstack__thunk_entry_2
	.hidden incstack__thunk_entry_2
incstack__thunk_entry_2:
	movq %rsp, %rbp			/* rbp = S - 16 until the end */
	.cfi_def_cfa_register rbp
	.globl incstack__thunk_entry_3
	.hidden incstack__thunk_entry_3
incstack__thunk_entry_3:
	pushq %rax
	pushq %rcx
	pushq %rdx
	pushq %rsi
	pushq %rdi
	pushq %r8
	pushq %r9
	pushq %r10
	pushq %r11
	pushq %rbx
	.cfi_offset rbx, -96
	movq 8(%rbp), %rdi		/* offset of the cell */
	leaq incstack__thunk_cells(%rip), %rax
	addq %rax, %rdi			/* 1: the cell */
	movq INCSTACK__CELL_RESUME(%rdi), %rax
	movq %rax, 8(%rbp)		/* from here the slot holds the resume address */
	.cfi_offset rip, -8
	movq INCSTACK__CELL_STACK(%rdi), %rbx
	movq INCSTACK__STACK_BUSY(%rbx), %rdx	/* 3: an operation that a jump left */
	movq %rsp, INCSTACK__STACK_BUSY(%rbx)
	movq (%rbp), %rsi		/* 2: the caller's frame pointer */
	andq $-16, %rsp
	.byte 0x67			/* addr32: six bytes, which pool.c can replace by its call */
	call incstack__returned
	.globl incstack__thunk_called
	.hidden incstack__thunk_called
incstack__thunk_called:
	movq %rax, 8(%rbp)
	movq $0, INCSTACK__STACK_BUSY(%rbx)
	leaq -80(%rbp), %rsp
	popq %rbx
	.cfi_restore rbx
	popq %r11
	popq %r10
	popq %r9
	popq %r8
	popq %rdi
	popq %rsi
	popq %rdx
	popq %rcx
	popq %rax
	popq %rbp
	.cfi_restore rbp
	.cfi_def_cfa rsp, 8
	.globl incstack__thunk_entry_4
	.hidden incstack__thunk_entry_4
incstack__thunk_entry_4:
	leaq 8(%rsp), %rsp
	.cfi_def_cfa_offset 0
	.globl incstack__thunk_entry_5
	.hidden incstack__thunk_entry_5
incstack__thunk_entry_5:
	notrack jmp *-8(%rsp)
	.cfi_endproc
	.size incstack__thunk_entry, . - incstack__thunk_entry
	.if . - incstack__thunk_entry > 256
	.error "the common entry must fit in 256 bytes: its CFI masks the pc"
	.endif

	/* Look-ups use pc - 1: the padding belongs to the FDE and the symbol. */
	.org incstack__thunk_entry + ENTRY - 16, 0x90
	.globl incstack__thunk_pool
	.hidden incstack__thunk_pool
	.type incstack__thunk_pool, @function
incstack__thunk_pool:
	.cfi_startproc
	.cfi_personality 0x9b, DW.ref.incstack__thunk_personality
	.cfi_def_cfa rsp, 0
	/* The return address is *((pc & -16) + POOL) if there is a thunk at pc & -16, else
	 * *(CFA - 8), which is pc. The second case is needed because libgcc reads pc from the
	 * slot, and the slot may have been restored since libgcc arrived here. A thunk begins
	 * with the bytes 48 c7 44 24 f8. No other code does so after a call, because a function
	 * that makes calls has no red zone. Valgrind supports neither DW_OP_dup nor DW_OP_bra, so
	 * the expression reads the word at slot + is_thunk * (cell - slot). */
	.cfi_escape 0x16, 16, 43, 0x09, 0xf8, 0x22, 0x80, 0, 0x09, 0xf0, 0x1a, 0x06, 0x48, 0x24, \
		0x0c, 0xc7, 0x44, 0x24, 0xf8, 0x08, 32, 0x24, 0x0c, 0, 0, 0, 0x48, 0x22, 0x29, \
		0x80, 0, 0x09, 0xf0, 0x1a, \
		0x0c, POOL & 255, (POOL >> 8) & 255, (POOL >> 16) & 255, POOL >> 24, 0x22, \
		0x77, 0x78, 0x1c, 0x1e, 0x22, 0x06
	.org incstack__thunk_entry + ENTRY, 0x90
	.globl incstack__thunks
	.hidden incstack__thunks
incstack__thunks:
	.set index, 0
	.rept INCSTACK__THUNK_COUNT
	movq $(index * 16), -8(%rsp)
	jmp incstack__thunk_entry
	.balign 16, 0xcc
	.set index, index + 1
	.endr
	.cfi_endproc
	.size incstack__thunk_pool, . - incstack__thunk_pool

	.globl incstack__thunk_cells
	.hidden incstack__thunk_cells
	.type incstack__thunk_cells, @object
incstack__thunk_cells:
	.zero POOL
	.size incstack__thunk_cells, . - incstack__thunk_cells

/* The landing pads. An unwinder takes a thunk for the handler's frame if the handler is in the
 * thunk's caller (D1). The personality routine then sends the
 * unwinder here, with the exception in rax and the return address in rdx. The pad restores the
 * return slot and resumes unwinding, as if a cleanup of this frame had ended. There is one pad
 * for each unwinder, because the exception must go to the _Unwind_Resume of the unwinder
 * that it came from. */
	.text
	.balign INCSTACK__LANDING_SIZE
	.globl incstack__thunk_landing
	.hidden incstack__thunk_landing
	.hidden incstack__landing_resume
	.type incstack__thunk_landing, @function
incstack__thunk_landing:
	.set index, 0
	.rept INCSTACK__LANDINGS
	.cfi_startproc
	.cfi_def_cfa rsp, 0
	.cfi_register rip, rdx
	endbr64
	pushq %rdx
	.cfi_def_cfa_offset 8
	.cfi_offset rip, -8
	movq %rax, %rdi			/* at INCSTACK__LANDING_PUSHED */
	notrack jmp *(incstack__landing_resume + index * 8)(%rip)
	.cfi_endproc
	.balign INCSTACK__LANDING_SIZE, 0xcc
	.set index, index + 1
	.endr
	.size incstack__thunk_landing, . - incstack__thunk_landing

/* void incstack__call_saved(void (*function)(void *), void *argument, size_t bytes)
 * Calls function(argument) with all vector and x87 state saved: bytes is the
 * size of the xsave area, 0 where the processor has no xsave. */
	.text
	.globl incstack__call_saved
	.hidden incstack__call_saved
	.type incstack__call_saved, @function
incstack__call_saved:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register rbp
	pushq %rbx
	pushq %r12
	.cfi_offset rbx, -24
	.cfi_offset r12, -32
	movq %rdi, %r11
	movq %rsi, %r10
	movq %rdx, %r12
	movq $512, %rax
	testq %rdx, %rdx
	cmovneq %rdx, %rax
	subq %rax, %rsp
	andq $-64, %rsp
	movq %rsp, %rbx
	testq %r12, %r12
	jz 1f
	xorl %eax, %eax			/* the xsave header must be zero */
	leaq 512(%rbx), %rdi
	movl $8, %ecx
	rep stosq
	movl $-1, %eax
	movl $-1, %edx
	xsave64 (%rbx)
	jmp 2f
1:	fxsave64 (%rbx)
2:	movq %r10, %rdi
	call *%r11
	testq %r12, %r12
	jz 1f
	movl $-1, %eax
	movl $-1, %edx
	xrstor64 (%rbx)
	jmp 2f
1:	fxrstor64 (%rbx)
2:	leaq -16(%rbp), %rsp
	popq %r12
	popq %rbx
	popq %rbp
	.cfi_def_cfa rsp, 8
	ret
	.cfi_endproc
	.size incstack__call_saved, . - incstack__call_saved

	/* The indirection through which the position-independent CFI names the
	 * personality routine. */
	.section .data.rel.local.DW.ref.incstack__thunk_personality, "awG", @progbits, \
		DW.ref.incstack__thunk_personality, comdat
	.balign 8
	.hidden DW.ref.incstack__thunk_personality
	.weak DW.ref.incstack__thunk_personality
	.type DW.ref.incstack__thunk_personality, @object
	.size DW.ref.incstack__thunk_personality, 8
DW.ref.incstack__thunk_personality:
	.quad incstack__thunk_personality

	.section .note.GNU-stack, "", @progbits
