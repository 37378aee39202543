/* SPDX-License-Identifier: MIT
 *
 * Fuzzes what incstack -p reads of an object that a process has mapped: headers, unwind tables, code and
 * symbols. The first bytes say where it is mapped and which pcs are looked up; the rest is the file. It is
 * also the memory of the process, in which the list of the dynamic linker is.
 */
#include "attach_stand_in.h"

#include "tool/attach/process/copy.h"
#include "tool/attach/process/entry.h"
#include "tool/attach/process/objects.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define START UINT64_C(0x7f0000000000)

/* Where the object is, and where pcs are. */
struct choice {
	uint32_t offset, pages, pc, step;
};

static int take(void *context, const struct tool_attach_object *object, const char *symbol,
		uint64_t address)
{
	uint64_t *sum = context;
	uint64_t offset;

	*sum += strlen(symbol) + tool_attach_entry(object, address);
	if (tool_attach_object_offset(object, address, &offset) == 0)
		*sum += offset;
	return 0;
}

static void look_up(struct tool_attach_space *space, const struct choice *choice)
{
	struct incstack_rule rule;

	tool_attach_space_begin(space);
	for (unsigned i = 0; i < 64; i++)
		tool_attach_space_rule(space, START + choice->pc + i * (uint64_t)choice->step,
				       (i & 1) != 0, &rule);
}

/* Some are mapped over others. */
static void map(struct tool_attach_space *space, const struct choice *choice)
{
	for (unsigned i = 0; i < 4; i++) {
		struct tool_attach_mapping mapping = {
			.low = START + i * UINT64_C(0x3000),
			.offset = choice->offset & ~UINT32_C(0xfff),
			.device = 1,
			.inode = 1 + 2 * i,
			.is_code = true,
			.path = "/a/library",
		};

		mapping.high = mapping.low + (uint64_t)(choice->pages % 64 + 1) * 4096;
		tool_attach_space_map(space, &mapping);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tool_attach_space *space;
	struct choice choice;
	uint64_t sum = 0;

	if (size < sizeof(choice))
		return 0;
	memcpy(&choice, data, sizeof(choice));
	set_input(data + sizeof(choice), size - sizeof(choice));
	if (space == NULL)
		space = tool_attach_space_new();
	if (space == NULL)
		abort();
	map(space, &choice);
	look_up(space, &choice);
	tool_attach_objects_search(space, take, &sum);
	tool_attach_space_clear(space);
	return 0;
}
