/* SPDX-License-Identifier: MIT
 *
 * The subcommands of incstack. Each gets the arguments behind its name and
 * returns an exit status.
 */
#ifndef INCSTACK_TOOL_HEAP_H
#define INCSTACK_TOOL_HEAP_H

int tool_heap(int argc, char **argv);
int tool_report(int argc, char **argv);

#endif
