/* SPDX-License-Identifier: MIT
 *
 * Asks the servers that DEBUGINFOD_URLS names for the debug information of a build.
 */
#ifndef INCSTACK_TOOL_DEBUGINFOD_H
#define INCSTACK_TOOL_DEBUGINFOD_H

/* The build-id is in hexadecimal digits. Returns a descriptor, or -1. Where a server does not answer, a line says
 * so once, and no server is asked again. It may take as long as DEBUGINFOD_MAXTIME says; by default a minute. */
int tool_debuginfod_find(const char *id);

#endif
