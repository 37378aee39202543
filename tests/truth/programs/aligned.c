/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 4096 page<top
 * leak 256 line<top2
 */
#include <stdlib.h>

void *volatile kept;

__attribute__((noinline)) static int page(void)
{
	void *block = NULL;
	const int error = posix_memalign(&block, 4096, 4096); /* <page page> */

	kept = block;
	return error;
}

__attribute__((noinline)) static int line(void)
{
	void *block = aligned_alloc(64, 256); /* <line line> */

	kept = block;
	return block == NULL;
}

int main(void)
{
	int errors = page(); /* <top main> */

	errors += line(); /* <top2 main> */
	return errors;
}
