/* SPDX-License-Identifier: MIT
 *
 * The version of the linked library.
 */
#include <incstack/version.h>

int incstack_version(void)
{
	return INCSTACK_VERSION;
}
