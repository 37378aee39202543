/* SPDX-License-Identifier: MIT
 *
 * A mapping of the process, as a line of /proc/PID/maps has it.
 */
#ifndef INCSTACK_TOOL_ATTACH_MAPPING_H
#define INCSTACK_TOOL_ATTACH_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

struct tool_attach_mapping {
	uint64_t low, high, offset, device, inode;
	bool is_code;
	const char *path; /* "": none */
};

#endif
