/* SPDX-License-Identifier: MIT
 *
 * incstack heap mode: validate
 * incstack heap truncates at most: 0
 *
 * As stacks_isolate, but only a section of the library's file tells that it was built by
 * GraalVM native-image. The recorder reads that file when a sample meets the library's code.
 */
#include "isolate.h"

int main(int argc, char **argv)
{
	return collect_in("stacks_section.so", argc, argv);
}
