/* SPDX-License-Identifier: MIT
 *
 * incstack heap mode: validate
 * incstack heap truncates at most: 0
 *
 * Loads a library that looks like one built by GraalVM native-image while there are
 * return barriers on the stacks of two threads: no return address that leads into the
 * library may be changed. Traces that meet the library for the first time are
 * complete, too.
 */
#include "isolate.h"

int main(int argc, char **argv)
{
	return collect_in("stacks_isolate.so", argc, argv);
}
