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

#include "attach.h"
#include "native/image.h"

enum { REMEMBERED = 1 << 16 };

/* What is known of a pc. */
struct known {
	uint64_t key; /* the pc, and in the top bit, whether it is exact; 0: nothing */
	struct incstack_rule rule;
	enum tool_attach_code code;
};

struct range {
	uint64_t low, high;
};

struct tool_attach_space {
	pid_t pid;
	struct tool_attach_module *modules; /* by address */
	size_t count;
	struct range *code; /* that belongs to no module */
	size_t code_count;
	struct known known[REMEMBERED];
};

struct tool_attach_space *tool_attach_space_new(pid_t pid)
{
	struct tool_attach_space *space = calloc(1, sizeof(*space));

	if (space != NULL)
		space->pid = pid;
	return space;
}

void tool_attach_space_clear(struct tool_attach_space *space)
{
	for (size_t i = 0; i < space->count; i++)
		tool_attach_image_close(&space->modules[i]);
	space->count = space->code_count = 0;
	memset(space->known, 0, sizeof(space->known));
}

void tool_attach_space_free(struct tool_attach_space *space)
{
	if (space == NULL)
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

/* Code that was made at run time. Code that is unmapped stays in the list. */
static void add_code(struct tool_attach_space *space, const struct tool_attach_mapping *mapping)
{
	struct range *more;

	for (size_t i = 0; i < space->code_count; i++)
		if (mapping->low >= space->code[i].low && mapping->high <= space->code[i].high)
			return;
	more = reallocarray(space->code, space->code_count + 1, sizeof(*more));
	if (more == NULL)
		return;
	space->code = more;
	more[space->code_count++] = (struct range){mapping->low, mapping->high};
}

/* Whether the module is that of the mapping. */
static int is_same(const struct tool_attach_module *module,
		   const struct tool_attach_mapping *mapping)
{
	return module->inode == mapping->inode && module->device == mapping->device &&
	       module->origin == mapping->low - mapping->offset && mapping->low >= module->low &&
	       mapping->high <= module->high;
}

/* Removes the modules that have a part in the range. Returns whether there was one. */
static int remove_modules(struct tool_attach_space *space, uint64_t low, uint64_t high)
{
	size_t left = 0;
	const size_t count = space->count;

	for (size_t i = 0; i < count; i++)
		if (space->modules[i].low < high && space->modules[i].high > low)
			tool_attach_image_close(&space->modules[i]);
		else
			space->modules[left++] = space->modules[i];
	space->count = left;
	return left < count;
}

static void insert(struct tool_attach_space *space, const struct tool_attach_module *module)
{
	size_t at = space->count++;

	for (; at > 0 && space->modules[at - 1].low > module->low; at--)
		space->modules[at] = space->modules[at - 1];
	space->modules[at] = *module;
}

static int add_module(struct tool_attach_space *space, const struct tool_attach_mapping *mapping)
{
	struct tool_attach_module *more;
	struct tool_attach_module module;

	for (size_t i = 0; i < space->count; i++)
		if (is_same(&space->modules[i], mapping))
			return 0;
	more = reallocarray(space->modules, space->count + 1, sizeof(*more));
	if (more == NULL)
		return 0;
	space->modules = more;
	if (tool_attach_image_open(space->pid, mapping, &module) != 0)
		return 0;
	remove_modules(space, module.low, module.high);
	insert(space, &module);
	return 1;
}

int tool_attach_space_map(struct tool_attach_space *space,
			  const struct tool_attach_mapping *mapping)
{
	const int is_module = mapping->inode != 0 || strcmp(mapping->path, "[vdso]") == 0;
	int changed;

	if (strcmp(mapping->path, "[uprobes]") == 0)
		return 0; /* code of the kernel's breakpoints: it has no caller */
	if (!is_module)
		add_code(space, mapping);
	changed = is_module ? add_module(space, mapping)
			    : remove_modules(space, mapping->low, mapping->high);
	memset(space->known, 0, sizeof(space->known));
	return changed;
}

int tool_attach_space_read(struct tool_attach_space *space)
{
	struct tool_attach_mapping mapping;
	char path[64];
	char *line = NULL;
	size_t size = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)space->pid);
	maps = fopen(path, "re");
	if (maps == NULL)
		return -1;
	while (getline(&line, &size, maps) > 0)
		if (parse(line, &mapping) == 0 && mapping.is_code)
			tool_attach_space_map(space, &mapping);
	free(line);
	fclose(maps);
	return space->count == 0;
}

/* ---- rules -------------------------------------------------------------------------------- */

const struct tool_attach_module *tool_attach_space_module(const struct tool_attach_space *space,
							  uint64_t address)
{
	size_t low = 0;
	size_t high = space->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (address < space->modules[middle].low)
			high = middle;
		else if (address >= space->modules[middle].high)
			low = middle + 1;
		else
			return &space->modules[middle];
	}
	return NULL;
}

static int is_other_code(const struct tool_attach_space *space, uint64_t pc)
{
	for (size_t i = 0; i < space->code_count; i++)
		if (pc >= space->code[i].low && pc < space->code[i].high)
			return 1;
	return 0;
}

/* A frame that is entered without a call: that of a signal, or the outermost one. */
static int needs_no_call(const struct incstack_rule *rule)
{
	return rule->kind == INCSTACK_RULE_SIGNAL || rule->kind == INCSTACK_RULE_END;
}

/* In code that was made at run time there is no table and, as it is not copied, no call. */
static enum tool_attach_code find(const struct tool_attach_space *space, uint64_t pc, int is_exact,
				  struct incstack_rule *rule)
{
	const uint64_t address = pc - !is_exact;
	const struct tool_attach_module *module = tool_attach_space_module(space, address);
	struct incstack__native_image image;
	int has_rule;

	if (module == NULL && !is_other_code(space, address))
		return TOOL_ATTACH_NO_CODE;
	if (module == NULL || module->local == 0)
		return TOOL_ATTACH_NO_RULE;
	image = (struct incstack__native_image){
		module->local, module->local + (module->high - module->low), module->header};
	has_rule = incstack__native_image_rule(&image, address - module->low + module->local, rule);
	if (!is_exact && !(has_rule && needs_no_call(rule)) &&
	    !incstack__native_image_follows_call(&image, pc - module->low + module->local))
		return TOOL_ATTACH_NO_CALL;
	return has_rule ? TOOL_ATTACH_RULE : TOOL_ATTACH_NO_RULE;
}

enum tool_attach_code tool_attach_space_rule(struct tool_attach_space *space, uint64_t pc,
					     int is_exact, struct incstack_rule *rule)
{
	const uint64_t key = pc | (uint64_t)is_exact << 63;
	const uint64_t hash = (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
	struct known *known = &space->known[hash >> 48];

	if (known->key != key || key == 0) {
		*known = (struct known){.key = key};
		known->code = find(space, pc, is_exact, &known->rule);
	}
	*rule = known->rule;
	return known->code;
}
