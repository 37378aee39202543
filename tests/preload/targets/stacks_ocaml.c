/* SPDX-License-Identifier: MIT
 *
 * incstack heap mode: validate
 *
 * Looks like a program built by ocamlopt: it exports the table of its return addresses, and its
 * collector looks up those that it finds on the stack.
 */
#include <stdint.h>
#include <stdlib.h>

#include "nest.h"

uintptr_t caml_frametable[1];

__attribute__((noinline)) static void allocate_and_collect(int depth)
{
	const volatile uintptr_t *frame = __builtin_frame_address(0);

	caml_frametable[0] = frame[1]; /* as the call wrote it */
	nest(depth, allocate);
	nest(depth / 2, allocate);
	if (frame[1] != caml_frametable[0])
		abort();
}

int main(void)
{
	for (int round = 0; round < 300; round++)
		allocate_and_collect(round % 12);
	return 0;
}
