/* SPDX-License-Identifier: MIT
 *
 * Many breakpoints that end at once.
 */
#ifndef INCSTACK_TOOL_ATTACH_LINKS_H
#define INCSTACK_TOOL_ATTACH_LINKS_H

#include <sys/types.h>

#include "program.h"

/* Whether this kernel has links that report all threads. */
bool tool_attach_links_work(void);
/* Links the program to those of the probes, of which there are `count`, that have the kind and the file
 * of the first one. Returns a descriptor, or -1 with errno. */
int tool_attach_link_open(pid_t pid, int program, const struct tool_attach_probe *probes,
			  size_t count);
/* Whether probe `at` is in the link of an earlier one. */
bool tool_attach_link_has(const struct tool_attach_probe *probes, size_t at);
/* Links a program that does nothing to all probes of calls. Returns how many links that made. */
size_t tool_attach_links_of_calls(pid_t pid, const struct tool_attach_probe *probes, size_t count,
				  int *fds);
/* Closes descriptors of links or of single probes. */
void tool_attach_links_close(const int *fds, size_t count);

#endif
