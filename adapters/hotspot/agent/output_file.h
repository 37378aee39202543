/* SPDX-License-Identifier: MIT
 *
 * Writes a profile to a file, so that nobody sees half of it. Knows nothing of the JVM.
 */
#ifndef AGENT_OUTPUT_FILE_H
#define AGENT_OUTPUT_FILE_H

#include <incstack/profile.h>

/* Returns null, or why the file could not be written. */
const char *agent_file_probe(const char *name);

/* Returns 0 or an error; for INCSTACK_EIO, errno has the reason. */
int agent_file_write(const char *name, const struct incstack_profile *profile,
		     enum incstack_profile_format format);

#endif
