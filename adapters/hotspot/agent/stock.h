/* SPDX-License-Identifier: MIT
 *
 * The techniques that every JVM offers. Both walk whole stacks with functions of JVMTI.
 *   jvmti     GetAllStackTraces: all threads are stopped in a safepoint at each tick
 *   partial   GetStackTrace: some running threads are stopped at each tick, one after the
 *             other, each by a handshake of its own
 */
#ifndef AGENT_STOCK_H
#define AGENT_STOCK_H

#include "technique.h"

extern const struct agent_technique_kind agent_technique_jvmti, agent_technique_partial;

#endif
