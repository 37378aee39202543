/* SPDX-License-Identifier: MIT
 *
 * All techniques, by their modes.
 */
#ifndef AGENT_TECHNIQUES_H
#define AGENT_TECHNIQUES_H

#include "technique.h"

/* Returns the technique for a mode in this JVM, or null if there is none; then *why says what to
 * do. */
const struct agent_technique_kind *agent_technique_for(enum agent_mode mode, jvmtiEnv *jvmti,
						       const char **why);

#endif
