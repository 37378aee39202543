/* SPDX-License-Identifier: MIT
 *
 * Whether a process survives breakpoints at returns.
 */
#ifndef INCSTACK_TOOL_ATTACH_SANDBOX_H
#define INCSTACK_TOOL_ATTACH_SANDBOX_H

#include <sys/types.h>

/* Such breakpoints change return addresses while a function runs. Returns 0, or an exit status after a
 * message that says why the process cannot have them. */
int tool_attach_process_may_return(pid_t pid);

#endif
