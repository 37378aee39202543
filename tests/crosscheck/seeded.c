/* SPDX-License-Identifier: MIT
 *
 * Which deliberate bug the core of a recorder has: the number, of src/trace/fault.h, that the
 * environment gives.
 */
#include <stdlib.h>

int toyvm_fault;

__attribute__((constructor)) static void choose(void)
{
	const char *number = getenv("INCSTACK_FAULT");

	toyvm_fault = number != NULL ? atoi(number) : 0;
}
