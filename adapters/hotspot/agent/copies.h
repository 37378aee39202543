/* SPDX-License-Identifier: MIT
 *
 * Other copies of the agent in this process. A JVM loads the same file once, however often it is named, but
 * a copy of the file is another library, with state of its own.
 */
#ifndef AGENT_COPIES_H
#define AGENT_COPIES_H

#include <stdbool.h>
#include <stddef.h>

/* Each copy exports a function of this name and type: whether it samples, or will when the JVM has started. */
#define AGENT_COPY_SAMPLES "incstack_java_samples"
typedef int agent_copy_samples_fn(void);

/* Returns whether a copy with another function than `own` samples; then its path is in `path`. */
bool agent_copy_that_samples(agent_copy_samples_fn *own, char *path, size_t size);

#endif
