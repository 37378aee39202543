/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 100 first
 * leak 200 second
 */
#include <stdlib.h>

void *volatile kept;

#define KEEP(size) \
	do { \
		void *const block = malloc(size); \
		kept = block; \
	} while (0)

int main(void)
{
	KEEP(100); /* <first main> */
	KEEP(200); /* <second main> */
	return 0;
}
