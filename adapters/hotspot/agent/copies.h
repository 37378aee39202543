/* SPDX-License-Identifier: MIT
 *
 * Other copies of the agent in this process. A JVM loads the same file once, however often it is named, but
 * a copy of the file is another library, with state of its own.
 */
#ifndef AGENT_COPIES_H
#define AGENT_COPIES_H

#include <stdbool.h>
#include <stddef.h>

/* What each copy exports: whether it samples, or will when the JVM has started. */
int incstack_java_samples(void);

/* Returns whether another copy samples; then its path is in `path`. */
bool agent_copy_that_samples(char *path, size_t size);

#endif
