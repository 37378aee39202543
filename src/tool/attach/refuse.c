/* SPDX-License-Identifier: MIT
 *
 * Prints why a process cannot be profiled.
 */
#include <stdio.h>

#include "attach.h"

int tool_attach_refuse(pid_t pid, const char *verb, const char *reason)
{
	fprintf(stderr, "incstack: cannot %s process %d: %s\n", verb, (int)pid, reason);
	return TOOL_STATUS_CANNOT_RUN;
}
