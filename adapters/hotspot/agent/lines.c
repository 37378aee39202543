/* SPDX-License-Identifier: MIT
 *
 * Finds line numbers of positions in bytecode.
 */
#include "lines.h"

/* Takes the last entry that does not begin after the position. */
int32_t agent_line_of(const struct agent_line *lines, uint32_t count, int32_t bci)
{
	int32_t begin = -1, line = 0;

	for (uint32_t i = 0; i < count; i++)
		if (lines[i].bci <= bci && lines[i].bci > begin) {
			begin = lines[i].bci;
			line = lines[i].line;
		}
	return line;
}
