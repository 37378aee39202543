/* SPDX-License-Identifier: MIT
 *
 * What is printed when a part of a profile was written. Knows nothing of the JVM.
 */
#ifndef AGENT_RESULT_H
#define AGENT_RESULT_H

#include <incstack/profile.h>

#include "figures.h"
#include "options.h"

/* Prints what was written to the file, and what was lost. */
void agent_say_result(const struct incstack_profile *profile, const struct agent_figures *figures,
		      const char *file);

/* Prints the counters. */
void agent_say_stats(enum agent_mode mode, const struct agent_figures *figures);

#endif
