/* SPDX-License-Identifier: MIT
 *
 * The objects of another process in the order in which its dynamic linker searches them, and their
 * symbols.
 */
#ifndef INCSTACK_TOOL_ATTACH_OBJECTS_H
#define INCSTACK_TOOL_ATTACH_OBJECTS_H

#include "space.h"

struct tool_attach_object {
	const struct tool_attach_module *module;
};

typedef int tool_attach_take(void *context, const struct tool_attach_object *object,
			     const char *symbol, uint64_t address);

/* Calls `take` for each function that an object exports, until it returns non-zero. Returns the
 * last result. For a static program, all its functions are passed. Addresses are those of the
 * file's program headers. */
int tool_attach_objects_search(const struct tool_attach_space *space, tool_attach_take *take,
			       void *context);
/* Returns the copy of the code at an address, or null if there are not so many bytes. */
const unsigned char *tool_attach_object_code(const struct tool_attach_object *object,
					     uint64_t address, size_t bytes);
/* Finds where code is in the file. Returns non-zero if it is not there. */
int tool_attach_object_offset(const struct tool_attach_object *object, uint64_t address,
			      uint64_t *offset);

#endif
