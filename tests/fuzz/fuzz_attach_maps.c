/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the reader of /proc/PID/maps. The input is the list. The modules must be in order and may not
 * overlap.
 */
#include "attach_stand_in.h"

#include "tool/attach/process/space.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct tool_attach_space *space)
{
	size_t count;
	const struct tool_attach_module *modules = tool_attach_space_modules(space, &count);

	for (size_t i = 0; i < count; i++)
		if (modules[i].low >= modules[i].high || modules[i].path == NULL ||
		    (i > 0 && modules[i - 1].high > modules[i].low))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tool_attach_space *space;
	struct incstack_rule rule;
	uint64_t pc;

	set_input(data, size);
	if (space == NULL)
		space = tool_attach_space_new();
	if (space == NULL)
		abort();
	tool_attach_space_read(space);
	check(space);
	for (size_t i = 0; i + sizeof(pc) <= size && i < 256; i++) {
		memcpy(&pc, data + i, sizeof(pc));
		tool_attach_space_rule(space, pc, (i & 1) != 0, &rule);
		tool_attach_space_rule(space, i * 0x1000, true, &rule);
	}
	tool_attach_space_clear(space);
	return 0;
}
