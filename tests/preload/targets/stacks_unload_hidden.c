/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack heap equal: visit_a visit_b
 *
 * Libraries that libc unloads by itself, as it does for iconv and for name services, one
 * at the place of the other.
 */
#include "visit.h"

enum { ROUNDS = 400 };

int main(int argc, char **argv)
{
	int error = argc < 2 || find_close() != 0 ? 10 : 0;

	directory = argv[1];
	for (int i = 0; i < ROUNDS && error == 0; i++)
		error = visit_plugin("stacks_unload", i % 2, close_hidden);
	if (error == 0 && same_place == 0)
		error = 12; /* not the case to be tested */
	return error;
}
