/* SPDX-License-Identifier: MIT
 *
 * Whether a process can be profiled.
 */
#ifndef INCSTACK_TOOL_ATTACH_PROCESS_H
#define INCSTACK_TOOL_ATTACH_PROCESS_H

#include <sys/types.h>

/* Prints why the tool cannot profile or record (the verb) the process. Returns an exit status. */
int tool_attach_refuse(pid_t pid, const char *verb, const char *reason);

/* Returns 0 and a descriptor of the process, or an exit status after a message that says why the
 * process cannot be profiled. */
int tool_attach_process(pid_t pid, int *pidfd);

#endif
