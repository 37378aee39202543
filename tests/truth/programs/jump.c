/* SPDX-License-Identifier: MIT
 *
 * flags: -O1
 * leak 48 lost<risky<top
 */
#include <setjmp.h>
#include <stdlib.h>

static jmp_buf back;
void *volatile kept;

__attribute__((noinline)) static void lose(int code)
{
	kept = malloc(48); /* <lost lose> */
	longjmp(back, code);
}

__attribute__((noinline)) static void risky(int i)
{
	if (i == 3)
		lose(i); /* <risky risky> */
	free(malloc(16));
}

int main(void)
{
	if (setjmp(back) == 0)
		for (volatile int i = 0; i < 5; i++)
			risky(i); /* <top main> */
	return 0;
}
