/* SPDX-License-Identifier: MIT
 *
 * incstack heap mode: validate
 *
 * Looks like a program built by .NET NativeAOT: its code is in a section with a special name, and
 * its runtime compares the return addresses that it finds on the stack.
 */
#include <stdint.h>
#include <stdlib.h>

#include "nest.h"

__attribute__((noinline, section("__managedcode"))) static void allocate_and_collect(int depth)
{
	const volatile uintptr_t *frame = __builtin_frame_address(0);
	const uintptr_t caller = frame[1];

	nest(depth, allocate);
	nest(depth / 2, allocate);
	if (frame[1] != caller)
		abort();
}

__attribute__((noinline, section("__managedcode"))) static void managed_main(void)
{
	for (int round = 0; round < 300; round++)
		allocate_and_collect(round % 12);
}

int main(void)
{
	managed_main();
	return 0;
}
