/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 4
 * incstack heap equal: visit_a visit_b
 *
 * Libraries that come and go, one at the place of the other, after the program has loaded another
 * library in a namespace of its own. dl_iterate_phdr then counts unloaded libraries wrongly.
 */
#include "visit.h"

enum { ROUNDS = 100 };

int main(int argc, char **argv)
{
	int error = argc < 2 || dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW) == NULL ? 10 : 0;

	dlclose(dlopen(NULL, RTLD_NOW)); /* there the recorder looks */
	directory = argv[1];
	for (int i = 0; i < ROUNDS && error == 0; i++)
		error = visit_plugin("stacks_unload", i % 2, dlclose);
	if (error == 0 && same_place == 0)
		error = 12; /* not the case to be tested */
	return error;
}
