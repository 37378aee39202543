/* SPDX-License-Identifier: MIT
 *
 * The subcommands on profiles. Each gets the arguments after its name and returns
 * an exit status.
 */
#ifndef INCSTACK_TOOL_PROFILE_H
#define INCSTACK_TOOL_PROFILE_H

int tool_convert(int argc, char **argv);
int tool_merge(int argc, char **argv);
int tool_compare(int argc, char **argv);
int tool_report(int argc, char **argv);

#endif
