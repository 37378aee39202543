/* SPDX-License-Identifier: MIT
 *
 * flags: -O0
 * leak 1000 alloc<top
 * leak 24 other
 */
#include <stdlib.h>

static char *make(size_t size)
{
	return malloc(size); /* <alloc make> */
}

int main(void)
{
	char *kept = make(1000); /* <top main> */

	kept[0] = 1;
	for (int i = 0; i < 10; i++)
		free(make(50));
	kept = malloc(24); /* <other main> */
	kept[0] = 1;
	return 0;
}
