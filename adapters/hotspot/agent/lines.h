/* SPDX-License-Identifier: MIT
 *
 * Finds line numbers of positions in bytecode. Knows nothing of the JVM.
 */
#ifndef AGENT_LINES_H
#define AGENT_LINES_H

#include <stdint.h>

struct agent_line {
	int32_t bci, line;
};

/* Returns the line of a position, from a table in any order; 0 if it is unknown. */
int32_t agent_line_of(const struct agent_line *lines, uint32_t count, int32_t bci);

#endif
