/* SPDX-License-Identifier: MIT
 *
 * The least that a library for LD_AUDIT has.
 */
#define _GNU_SOURCE
#include <link.h>

unsigned la_version(unsigned version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}
