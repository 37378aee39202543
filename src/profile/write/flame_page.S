/* SPDX-License-Identifier: MIT
 *
 * The page of the flame graph as bytes, so that it can be written as the page that
 * it is. INCSTACK_FLAME_PAGE is its path.
 */
	.section .rodata
	.globl incstack__flame_page, incstack__flame_page_end
	.hidden incstack__flame_page, incstack__flame_page_end
	.type incstack__flame_page, @object
incstack__flame_page:
	.incbin INCSTACK_FLAME_PAGE
incstack__flame_page_end:
	.byte 0
	.size incstack__flame_page, . - incstack__flame_page
	.section .note.GNU-stack, "", @progbits
