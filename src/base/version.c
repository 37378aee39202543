/* SPDX-License-Identifier: MIT
 *
 * The version of the linked library.
 */
#include <incstack/incstack.h>

int incstack_version(void)
{
	return INCSTACK_VERSION;
}
