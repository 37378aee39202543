/* SPDX-License-Identifier: MIT
 *
 * Output files, for whoever may create them: the broker.
 */
#ifndef INCSTACK_TOOL_OUTPUT_H
#define INCSTACK_TOOL_OUTPUT_H

#include <stdbool.h>

/* Returns a descriptor, or -1 and sets errno. A link or a pipe of another user is refused: it may lead
 * elsewhere. What has the name is looked at and replaced in the same folder, so nobody can exchange it for a
 * link in between. */
int tool_output_create(const char *path);

/* Like this, for a file that must stay as it is until the new one is complete: a regular file of the user, without
 * another name. If no file can be made beside it, the result is -1. */
int tool_output_replace(const char *path);

/* Gives the file its name, or removes what was written if that failed. Returns 0 or an errno. */
int tool_output_finish(bool failed);

/* Removes what was written of an output that will not be complete. May be called in a signal handler,
 * before the process ends. */
void tool_output_abandon(void);

#endif
