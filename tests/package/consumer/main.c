/* SPDX-License-Identifier: MIT
 *
 * Compiles against the installed headers and calls the installed archive.
 */
#include <stdio.h>

#include <incstack/incstack.h>

int main(void)
{
	if (incstack_version() != INCSTACK_VERSION)
		return 1;
	return puts(incstack_error_text(0)) < 0;
}
