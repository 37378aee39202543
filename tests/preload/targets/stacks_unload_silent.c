/* SPDX-License-Identifier: MIT
 *
 * incstack heap says: code was unloaded without notice
 *
 * As stacks_unload_hidden, but the libraries are made so that their unload is not announced.
 * Which of them the frames of a batch belong to is not known: they have no callers then.
 * Where the recorder looks, it finds the same library as at the look before.
 */
#include "visit.h"

enum { ROUNDS = 400, LOOK = 50 };

/* A dlclose by the program: the recorder looks what is loaded. */
static void look(void)
{
	allocate();
	dlclose(dlopen(NULL, RTLD_NOW));
}

int main(int argc, char **argv)
{
	int error = argc < 2 || find_close() != 0 ? 10 : 0;

	directory = argv[1];
	for (int i = 0; i < ROUNDS && error == 0; i++) {
		in_visit = i % LOOK == 0 ? look : allocate;
		error = visit_plugin("stacks_silent", i % 2, close_hidden);
	}
	if (error == 0 && same_place == 0)
		error = 12; /* not the case to be tested */
	return error;
}
