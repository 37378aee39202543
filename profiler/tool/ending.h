/* SPDX-License-Identifier: MIT
 *
 * The signals by which a user, a terminal or the system ends the tool.
 */
#ifndef INCSTACK_TOOL_ENDING_H
#define INCSTACK_TOOL_ENDING_H

#include <signal.h>

static const int tool_ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ};

enum { TOOL_ENDINGS = sizeof(tool_ending) / sizeof(tool_ending[0]) };

#endif
