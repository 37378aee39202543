/* SPDX-License-Identifier: MIT
 *
 * The techniques of a JVM with the library inside: samples are requested, and the traces are
 * retrieved later, many at once.
 */
#ifndef AGENT_EXTENDED_H
#define AGENT_EXTENDED_H

#include "technique.h"

extern const struct agent_technique_kind agent_technique_extended_partial,
	agent_technique_extended_incremental, agent_technique_extended_partial_incremental;

#endif
