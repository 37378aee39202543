/* SPDX-License-Identifier: MIT
 *
 * Allocates below functions whose last instruction is a call that does not return. The
 * return address of such a call is the first byte after the function, which belongs to the next
 * function or to none.
 *
 * incstack heap traces: 300
 * incstack heap returns: 40
 */
#include <stdlib.h>

enum { HANDLERS = 20, VISITS = 10 };

#define FRAME __attribute__((noinline))

/* It has a frame pointer, so its samples do not share a walk: they would not need barriers so near. */
static FRAME void allocate(int depth)
{
	volatile char *room = __builtin_alloca((size_t)depth + 1);
	void *volatile block;

	room[0] = 0;
	if (depth > 0)
		allocate(depth - 1);
	block = malloc(16);
	free(block);
}

static void handle(void)
{
	for (int i = 0; i < VISITS; i++)
		allocate(i % 4);
}

/* The assembler puts nothing behind the call, neither instructions nor padding. */
__attribute__((noreturn, used)) static void end(void)
{
	handle();
	exit(0);
}
__attribute__((noreturn)) void call_end(void);
__asm__(".pushsection .text.call_end, \"ax\", @progbits\n"
	".type call_end, @function\n"
	"call_end:\n"
	".cfi_startproc\n"
	"push %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	"call end\n"
	".cfi_endproc\n"
	".size call_end, . - call_end\n"
	".popsection\n");

int main(void)
{
	for (int i = 0; i < HANDLERS; i++)
		if (atexit(handle) != 0)
			return 1;
	handle();
	call_end();
}
