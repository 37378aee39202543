/* SPDX-License-Identifier: MIT
 *
 * The page of the flame graph as bytes: its parts in page/, in the order in which they are written. The data
 * stands between the head and the tail.
 */
	.section .rodata
	.globl incstack__page_head, incstack__page_tail, incstack__page_end
	.hidden incstack__page_head, incstack__page_tail, incstack__page_end
	.type incstack__page_head, @object
incstack__page_head:
	.incbin "head.html"
	.incbin "style.css"
	.incbin "body.html"
	.size incstack__page_head, . - incstack__page_head
	.type incstack__page_tail, @object
incstack__page_tail:
	.incbin "script.html"
	.incbin "model.js"
	.incbin "trees.js"
	.incbin "colors.js"
	.incbin "draw.js"
	.incbin "search.js"
	.incbin "time.js"
	.incbin "state.js"
	.incbin "main.js"
	.incbin "tail.html"
	.size incstack__page_tail, . - incstack__page_tail
incstack__page_end:
	.byte 0
	.section .note.GNU-stack, "", @progbits
