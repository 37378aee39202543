/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 640 inner<outer<top
 * leak 320 inner<other<top2
 */
#include <stdlib.h>

void *volatile kept;

static inline void *inner(size_t count)
{
	return calloc(count, 32); /* <inner inner> */
}

static inline void outer(void)
{
	kept = inner(20); /* <outer outer> */
}

static inline void other(void)
{
	kept = inner(10); /* <other other> */
}

int main(void)
{
	outer(); /* <top main> */
	other(); /* <top2 main> */
	return 0;
}
