/* SPDX-License-Identifier: MIT
 *
 * What the tool prints on its standard output arrives, or the tool fails.
 */
#ifndef INCSTACK_TOOL_PRINTED_H
#define INCSTACK_TOOL_PRINTED_H

/* Writes what is still in the buffer of stdout. If anything was lost, prints a line and returns 1 in place of a
 * status of 0. */
int tool_printed(int status);

#endif
