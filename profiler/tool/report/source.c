/* SPDX-License-Identifier: MIT
 *
 * Finds the source of addresses in DWARF. The ranges of the units are sorted once; the lines and the functions
 * of a unit are read when an address in it is first looked up. Some compilers write no .debug_aranges, so the
 * units themselves are asked.
 */
#include "source.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdlib.h>

#include "source_functions.h"
#include "split_file.h"
#include "texts.h"

struct unit {
	Dwarf_Die die;
	bool is_read;
	Dwarf_Files *files; /* null: there are none */
	size_t file_count;
	struct tool_functions functions;
};

/* A range of addresses that a unit has. */
struct extent {
	Dwarf_Addr low, high;
	uint32_t unit;
};

struct tool_source {
	uint64_t *left;
	bool is_damaged;
	const char *missing; /* null: no split file is */
	struct unit *units;
	uint32_t unit_count;
	struct extent *extents; /* sorted */
	uint32_t extent_count;
};

/* ---- units ---------------------------------------------------------------------------------- */

static void add_extents(struct tool_source *source, Dwarf_Die *die, uint32_t unit)
{
	Dwarf_Addr base;
	Dwarf_Addr low;
	Dwarf_Addr high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0 &&
	       tool_source_spend(source->left)) {
		struct extent *more =
			tool_with_room(source->extents, source->extent_count, sizeof(*more));

		if (more == NULL)
			return;
		source->extents = more;
		more[source->extent_count++] = (struct extent){low, high, unit};
	}
	source->is_damaged |= at < 0;
}

/* Adds a unit. `own` is in the file itself, where the ranges of the unit are; `die` may be in a split file. */
static bool add_unit(struct tool_source *source, Dwarf_Die *own, Dwarf_Die *die)
{
	struct unit *more = tool_with_room(source->units, source->unit_count, sizeof(*more));

	if (more == NULL)
		return false;
	source->is_damaged |= dwarf_tag(die) == DW_TAG_invalid;
	source->units = more;
	more[source->unit_count] = (struct unit){.die = *die};
	add_extents(source, own, source->unit_count++);
	return true;
}

/* Returns the name of the file with the rest of a unit. */
static const char *split_name(Dwarf_Die *die)
{
	Dwarf_Attribute name;

	if (dwarf_attr(die, DW_AT_dwo_name, &name) == NULL &&
	    dwarf_attr(die, DW_AT_GNU_dwo_name, &name) == NULL)
		return "?";
	return dwarf_formstring(&name);
}

static void add_units(struct tool_source *source, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	Dwarf_Die split;
	uint8_t type = 0;
	int got;

	while ((got = dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, &split)) == 0 &&
	       tool_source_spend(source->left)) {
		if (type == DW_UT_skeleton && split.addr == NULL && source->missing == NULL)
			source->missing = split_name(&die);
		if (!add_unit(source, &die, split.addr != NULL ? &split : &die))
			break;
	}
	source->is_damaged |= got < 0;
}

static int by_low(const void *a, const void *b)
{
	const struct extent *left = a;
	const struct extent *right = b;

	return left->low < right->low ? -1 : left->low > right->low;
}

struct tool_source *tool_source_make(Dwarf *dwarf, uint64_t *left)
{
	struct tool_source *source = calloc(1, sizeof(*source));

	if (source == NULL)
		return NULL;
	source->left = left;
	tool_split_files(true);
	add_units(source, dwarf);
	tool_split_files(false);
	if (source->extent_count > 0)
		qsort(source->extents, source->extent_count, sizeof(*source->extents), by_low);
	return source;
}

void tool_source_free(struct tool_source *source)
{
	if (source == NULL)
		return;
	for (uint32_t i = 0; i < source->unit_count; i++)
		tool_functions_free(&source->units[i].functions);
	free(source->units);
	free(source->extents);
	free(source);
}

static struct unit *find_unit(const struct tool_source *source, Dwarf_Addr address)
{
	uint32_t low = 0;
	uint32_t high = source->extent_count;
	struct unit *unit;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (source->extents[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || source->extents[low - 1].high <= address)
		return NULL;
	unit = &source->units[source->extents[low - 1].unit];
	return unit;
}

/* The lines are read with the files. */
static void read_unit(struct tool_source *source, struct unit *unit)
{
	if (unit->is_read)
		return;
	unit->is_read = true;
	if (dwarf_getsrcfiles(&unit->die, &unit->files, &unit->file_count) == 0)
		return;
	unit->files = NULL;
	source->is_damaged |= dwarf_hasattr(&unit->die, DW_AT_stmt_list) != 0;
}

bool tool_source_is_damaged(const struct tool_source *source)
{
	return source->is_damaged || *source->left == 0;
}

const char *tool_source_missing(const struct tool_source *source)
{
	return source->missing;
}

/* ---- functions ------------------------------------------------------------------------------ */

/* Finds an attribute of an entry, or of the entry that it is an instance of. */
static bool attribute_of(const Dwarf_Die *entry, unsigned name, Dwarf_Attribute *attribute)
{
	enum { ORIGINS_MOST = 8 };
	static const unsigned origins[] = {DW_AT_abstract_origin, DW_AT_specification};
	Dwarf_Die die = *entry;

	for (unsigned i = 0; i < ORIGINS_MOST; i++) {
		Dwarf_Attribute origin;

		if (dwarf_attr(&die, name, attribute) != NULL)
			return true;
		if (dwarf_attr(&die, origins[0], &origin) == NULL &&
		    dwarf_attr(&die, origins[1], &origin) == NULL)
			return false;
		if (dwarf_formref_die(&origin, &die) == NULL)
			return false;
	}
	return false;
}

/* Damaged debug information has empty texts. */
static const char *text_or_null(const char *text)
{
	return text != NULL && text[0] != 0 ? text : NULL;
}

static const char *name_of(const Dwarf_Die *die)
{
	static const unsigned names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name};
	Dwarf_Attribute attribute;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (attribute_of(die, names[i], &attribute))
			return text_or_null(dwarf_formstring(&attribute));
	return NULL;
}

static int number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;

	if (dwarf_attr(die, name, &attribute) == NULL || dwarf_formudata(&attribute, &value) != 0 ||
	    value > INT32_MAX)
		return 0;
	return (int)value;
}

/* Where a function is called that is inlined. */
static void find_call(const struct unit *unit, Dwarf_Die *die, struct tool_source_frame *caller)
{
	const int file = number_of(die, DW_AT_call_file);

	/* Without the attribute, the number is 0, which is the unit's own file in DWARF 5. */
	if (dwarf_hasattr(die, DW_AT_call_file) != 0 && unit->files != NULL &&
	    (size_t)file < unit->file_count)
		caller->file = text_or_null(dwarf_filesrc(unit->files, (size_t)file, NULL, NULL));
	caller->line = number_of(die, DW_AT_call_line);
}

static void find_line(struct unit *unit, Dwarf_Addr address, struct tool_source_frame *frame)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, address);

	if (line == NULL)
		return;
	frame->file = text_or_null(dwarf_linesrc(line, NULL, NULL));
	if (dwarf_lineno(line, &frame->line) != 0 || frame->line < 0)
		frame->line = 0;
}

/* Finds what is inlined at an address, outermost first. An entry comes before those that are inlined into it. */
static size_t find_inlined(const struct tool_function *function, Dwarf_Addr address,
			   const struct tool_inlined **found, uint64_t *left)
{
	size_t count = 0;

	for (uint32_t i = 0; i < function->inlined_count && tool_source_spend(left); i++) {
		const struct tool_inlined *inlined = &function->inlined[i];

		if (address < inlined->low || address >= inlined->high ||
		    count == TOOL_SOURCE_FRAMES_MOST - 1 ||
		    (count > 0 && found[count - 1]->depth >= inlined->depth))
			continue;
		found[count++] = inlined;
	}
	return count;
}

size_t tool_source_find(struct tool_source *source, Dwarf_Addr address,
			struct tool_source_frame frames[TOOL_SOURCE_FRAMES_MOST])
{
	const struct tool_inlined *inlined[TOOL_SOURCE_FRAMES_MOST];
	struct unit *unit = find_unit(source, address);
	struct tool_function *function;
	size_t count;

	if (unit == NULL)
		return 0;
	read_unit(source, unit);
	function = tool_functions_find(&unit->functions, &unit->die, address, source->left);
	count = function != NULL ? find_inlined(function, address, inlined, source->left) : 0;
	for (size_t i = 0; i <= count; i++)
		frames[i] = (struct tool_source_frame){0};
	find_line(unit, address, &frames[0]);
	for (size_t i = 0; i < count; i++) {
		Dwarf_Die die = inlined[count - 1 - i]->die;

		frames[i].name = name_of(&die);
		find_call(unit, &die, &frames[i + 1]);
	}
	if (function != NULL)
		frames[count].name = name_of(&function->die);
	return count + 1;
}
