/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 512 start
 * leak 256 finish
 */
#include <stdlib.h>

void *volatile kept;

__attribute__((constructor)) static void start(void)
{
	kept = malloc(512); /* <start start> */
}

__attribute__((destructor)) static void finish(void)
{
	kept = malloc(256); /* <finish finish> */
}

int main(void)
{
	return 0;
}
