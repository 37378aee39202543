/* SPDX-License-Identifier: MIT
 *
 * Reads options with getopt_long, and says what is wrong with one. libc would print the user's text as it is.
 */
#ifndef INCSTACK_TOOL_OPTION_H
#define INCSTACK_TOOL_OPTION_H

#include <getopt.h>

/* As getopt_long. `letters` has a colon before the first letter. Returns '?' after a message. */
int tool_option_next(int argc, char **argv, const char *letters, const struct option *names);

#endif
