/* SPDX-License-Identifier: MIT
 *
 * The objects that the process has mapped.
 */
#ifndef INCSTACK_TOOL_ATTACH_IMAGE_H
#define INCSTACK_TOOL_ATTACH_IMAGE_H

#include <stdint.h>

#include "mapping.h"
#include "tracefile/identity.h"

struct tool_attach_copies;

struct tool_attach_module {
	uint64_t low, high, bias;
	uint64_t device, inode;
	uint64_t origin; /* where the file would begin if it were mapped as its code is */
	struct tool_attach_copy *copy; /* of the object from `low` on; null: there is none */
	char *path;
	struct incstack__identity identity; /* of its file, if the mapped file could be opened */
};

/* Describes the module of which the mapping is the code. Returns non-zero if there is no memory. A file
 * that cannot be read gives a module without a copy. */
int tool_attach_image_open(struct tool_attach_copies *copies,
			   const struct tool_attach_mapping *mapping,
			   struct tool_attach_module *module);
void tool_attach_image_close(struct tool_attach_module *module);

#endif
