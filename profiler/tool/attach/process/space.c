/* SPDX-License-Identifier: MIT
 *
 * The code of another process: which modules it has mapped, and the unwind rule of each pc. What was
 * found out about a pc is remembered until the modules change.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "ask.h"
#include "copy.h"
#include "pointers.h"
#include "space.h"
#include "native/image.h"

enum { REMEMBERED = 1 << 16 };
enum { MODULES_MOST = 4096, RANGES_MOST = 8192 };
enum { WORK_MOST = 1 << 20 }; /* bytes of unwind tables that are read for one walk */

/* What is known of a pc. */
struct known {
	uint64_t key; /* the pc, and in the top bit, whether it is exact; 0: nothing */
	struct incstack_rule rule;
	enum tool_attach_code code;
	uint32_t generation; /* of the modules */
};

struct range {
	uint64_t low, high;
};

struct tool_attach_space {
	struct tool_attach_copies copies;
	struct tool_attach_memory memory;
	struct tool_attach_module *modules; /* by address; none of them overlap */
	size_t count, room;
	struct range *code; /* that belongs to no module; by address; none touch */
	size_t code_count;
	uint64_t left_out; /* mappings for which there was no room */
	uint64_t work;     /* of this walk */
	uint32_t generation;
	struct known known[REMEMBERED];
};

struct tool_attach_space *tool_attach_space_new(void)
{
	struct tool_attach_space *space = calloc(1, sizeof(*space));

	if (!space)
		return NULL;
	space->code = calloc(RANGES_MOST, sizeof(*space->code));
	space->memory.fd = TOOL_ATTACH_MEMORY_CLOSED;
	tool_attach_copies_init(&space->copies);
	if (space->code)
		return space;
	free(space);
	return NULL;
}

/* What was known holds no longer. */
static void forget(struct tool_attach_space *space)
{
	if (++space->generation == 0)
		memset(space->known, 0, sizeof(space->known));
}

void tool_attach_space_clear(struct tool_attach_space *space)
{
	for (size_t i = 0; i < space->count; i++)
		tool_attach_image_close(&space->modules[i]);
	space->count = space->code_count = 0;
	tool_attach_memory_close(&space->memory);
	forget(space);
}

void tool_attach_space_free(struct tool_attach_space *space)
{
	if (!space)
		return;
	tool_attach_space_clear(space);
	free(space->modules);
	free(space->code);
	free(space);
}

const struct tool_attach_module *tool_attach_space_modules(const struct tool_attach_space *space,
							   size_t *count)
{
	*count = space->count;
	return space->modules;
}

uint64_t tool_attach_space_left_out(const struct tool_attach_space *space)
{
	return space->left_out + space->copies.refused;
}

/* ---- places in the lists -------------------------------------------------------------- */

/* Returns the number of the first module that ends above the address. */
static size_t module_above(const struct tool_attach_space *space, uint64_t address)
{
	size_t low = 0;
	size_t high = space->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (space->modules[middle].high > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Returns the number of the first range of other code that ends above the address. */
static size_t range_above(const struct tool_attach_space *space, uint64_t address)
{
	size_t low = 0;
	size_t high = space->code_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (space->code[middle].high > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct tool_attach_module *tool_attach_space_module(const struct tool_attach_space *space,
							  uint64_t address)
{
	const size_t at = module_above(space, address);

	return at < space->count && space->modules[at].low <= address ? &space->modules[at] : NULL;
}

static bool is_other_code(const struct tool_attach_space *space, uint64_t pc)
{
	const size_t at = range_above(space, pc);

	return at < space->code_count && space->code[at].low <= pc;
}

/* ---- reading the list ----------------------------------------------------------------- */

/* Parses a line of /proc/PID/maps, which loses its end. */
static int parse(char *line, struct tool_attach_mapping *mapping)
{
	char allowed[5];
	unsigned high;
	unsigned low;
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &mapping->low, &mapping->high, allowed, &mapping->offset, &high, &low,
		   &mapping->inode, &at) < 7)
		return -1;
	mapping->device = makedev(high, low);
	mapping->is_code = allowed[2] == 'x';
	mapping->path = line + at;
	return 0;
}

/* Code that was made at run time. Code that is unmapped stays in the list. Ranges that overlap or
 * touch become one. Returns non-zero if there is no room. */
static int add_code(struct tool_attach_space *space, const struct tool_attach_mapping *mapping)
{
	struct range range = {mapping->low, mapping->high};
	size_t first;
	size_t end;

	first = range_above(space, range.low - (range.low > 0));
	for (end = first; end < space->code_count && space->code[end].low <= range.high; end++)
		;
	if (end > first) {
		if (space->code[first].low < range.low)
			range.low = space->code[first].low;
		if (space->code[end - 1].high > range.high)
			range.high = space->code[end - 1].high;
	} else if (space->code_count == RANGES_MOST) {
		return -1;
	}
	memmove(&space->code[first + 1], &space->code[end],
		(space->code_count - end) * sizeof(range));
	space->code[first] = range;
	space->code_count += 1 + first - end;
	return 0;
}

/* Whether the module is that of the mapping. */
static bool is_same(const struct tool_attach_module *module,
		    const struct tool_attach_mapping *mapping)
{
	return module->inode == mapping->inode && module->device == mapping->device &&
	       module->origin == mapping->low - mapping->offset && mapping->low >= module->low &&
	       mapping->high <= module->high;
}

/* Removes the modules that have a part in the range. Returns whether there was one. */
static bool remove_modules(struct tool_attach_space *space, uint64_t low, uint64_t high)
{
	const size_t first = module_above(space, low);
	size_t end = first;

	for (; end < space->count && space->modules[end].low < high; end++)
		tool_attach_image_close(&space->modules[end]);
	if (end == first)
		return false;
	memmove(&space->modules[first], &space->modules[end],
		(space->count - end) * sizeof(*space->modules));
	space->count -= end - first;
	return true;
}

/* Makes room for one more module. Returns non-zero if there is none. */
static int make_room(struct tool_attach_space *space)
{
	const size_t room = space->room > 0 ? 2 * space->room : 64;
	struct tool_attach_module *more;

	if (space->count < space->room)
		return 0;
	if (space->count >= MODULES_MOST)
		return -1;
	more = reallocarray(space->modules, room, sizeof(*more));
	if (!more)
		return -1;
	space->modules = more;
	space->room = room;
	return 0;
}

static void insert(struct tool_attach_space *space, const struct tool_attach_module *module)
{
	const size_t at = module_above(space, module->low);

	memmove(&space->modules[at + 1], &space->modules[at],
		(space->count - at) * sizeof(*module));
	space->modules[at] = *module;
	space->count++;
}

static bool add_module(struct tool_attach_space *space, const struct tool_attach_mapping *mapping)
{
	const struct tool_attach_module *there = tool_attach_space_module(space, mapping->low);
	struct tool_attach_module module;

	if (there && is_same(there, mapping))
		return false;
	if (make_room(space) != 0) {
		space->left_out++;
		add_code(space, mapping);
		return false;
	}
	if (tool_attach_image_open(&space->copies, mapping, &module) != 0)
		return false;
	remove_modules(space, module.low, module.high);
	insert(space, &module);
	return true;
}

bool tool_attach_space_map(struct tool_attach_space *space,
			   const struct tool_attach_mapping *mapping)
{
	const bool is_module = mapping->inode != 0 || strcmp(mapping->path, "[vdso]") == 0;
	bool changed;

	if (strcmp(mapping->path, "[uprobes]") == 0 || mapping->low >= mapping->high)
		return false; /* code of the kernel's breakpoints: it has no caller */
	if (!is_module && add_code(space, mapping) != 0)
		space->left_out++;
	changed = is_module ? add_module(space, mapping)
			    : remove_modules(space, mapping->low, mapping->high);
	forget(space);
	return changed;
}

int tool_attach_space_read(struct tool_attach_space *space)
{
	const int fd = tool_attach_ask_maps();
	FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
	struct tool_attach_mapping mapping;
	char *line = NULL;
	size_t size = 0;

	if (!maps) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while (getline(&line, &size, maps) > 0)
		if (parse(line, &mapping) == 0 && mapping.is_code)
			tool_attach_space_map(space, &mapping);
	free(line);
	fclose(maps);
	return space->count == 0;
}

const unsigned char *tool_attach_space_code(const struct tool_attach_space *space, uint64_t address,
					    size_t bytes)
{
	const struct tool_attach_module *module = tool_attach_space_module(space, address);
	struct tool_attach_copy *copy = module ? module->copy : NULL;
	const uint64_t at = module ? address - module->low : 0;

	if (!copy || at > copy->size || bytes > copy->size - at ||
	    !tool_attach_copy_get(copy, at, bytes))
		return NULL;
	return copy->memory + at;
}

/* ---- rules -------------------------------------------------------------------------------- */

/* What is asked for of a module. */
struct asked {
	struct tool_attach_space *space;
	const struct tool_attach_module *module;
	bool is_denied; /* something could not be had */
};

/* The work of a walk is limited, whatever the tables are. The index is only searched. */
static bool get(void *context, uintptr_t at, uint64_t bytes)
{
	struct asked *asked = context;
	struct tool_attach_copy *copy = asked->module->copy;
	const uint64_t place = at - (uintptr_t)copy->memory;

	if (place != copy->header)
		asked->space->work += bytes;
	asked->is_denied |=
		asked->space->work > WORK_MOST || !tool_attach_copy_get(copy, place, bytes);
	return !asked->is_denied;
}

void tool_attach_space_begin(struct tool_attach_space *space)
{
	space->work = 0;
}

/* A frame that is entered without a call: that of a signal, or the outermost one. */
static bool needs_no_call(const struct incstack_rule *rule)
{
	return rule->kind == INCSTACK_RULE_SIGNAL || rule->kind == INCSTACK_RULE_END;
}

/* In code that was made at run time, or cannot be copied, there is no table; nor has Go one. */
static enum tool_attach_code find(struct tool_attach_space *space, uint64_t pc, bool is_exact,
				  struct incstack_rule *rule)
{
	const uint64_t address = pc - !is_exact;
	struct asked asked = {space, tool_attach_space_module(space, address), false};
	const struct tool_attach_module *module = asked.module;
	struct incstack__native_image image = {.bytes = {.get = get, .context = &asked}};
	uintptr_t low;
	bool has_rule;

	if (!module && !is_other_code(space, address))
		return TOOL_ATTACH_NO_CODE;
	if (!module || !module->copy)
		return tool_attach_pointer_find(&space->memory, module, pc, is_exact, rule);
	image.bytes.low = low = (uintptr_t)module->copy->memory;
	image.bytes.high = low + module->copy->size;
	image.header = module->copy->header != 0 ? low + module->copy->header : 0;
	has_rule = incstack__native_image_rule(&image, address - module->low + low, rule);
	if (!has_rule && !asked.is_denied)
		return tool_attach_pointer_find(&space->memory, module, pc, is_exact, rule);
	if (!is_exact && !(has_rule && needs_no_call(rule)) &&
	    !incstack__native_image_follows_call(&image, pc - module->low + low))
		return asked.is_denied ? TOOL_ATTACH_NO_RULE : TOOL_ATTACH_NO_CALL;
	return has_rule ? TOOL_ATTACH_RULE : TOOL_ATTACH_NO_RULE;
}

/* What was not found because the walk has done too much is looked up again by another walk. */
enum tool_attach_code tool_attach_space_rule(struct tool_attach_space *space, uint64_t pc,
					     bool is_exact, struct incstack_rule *rule)
{
	const uint64_t key = pc | (uint64_t)is_exact << 63;
	const uint64_t hash = (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
	struct known *known = &space->known[hash >> 48];

	if (known->key != key || known->generation != space->generation || key == 0) {
		*known = (struct known){.key = key, .generation = space->generation};
		known->code = find(space, pc, is_exact, &known->rule);
		if (space->work > WORK_MOST) {
			known->key = 0;
			known->code = TOOL_ATTACH_NO_RULE;
		}
	}
	*rule = known->rule;
	return known->code;
}

struct incstack_rule tool_attach_space_guess(struct tool_attach_space *space,
					     const struct cursor *at, incstack__read_word *word,
					     const void *stack)
{
	return tool_attach_pointer_rule(&space->memory, tool_attach_space_module(space, at->pc), at,
					word, stack);
}
