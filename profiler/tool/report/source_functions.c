/* SPDX-License-Identifier: MIT
 *
 * Walks the entries of a unit. Most functions lie at the top of the unit, or in namespaces and modules. Only
 * those that an address is looked up in are walked further. Siblings must follow each other in the file,
 * so a walk ends.
 */
#include "source_functions.h"

#include <dwarf.h>
#include <stdlib.h>

#include "texts.h"

/* Compilers nest scopes less deeply. */
enum { DEPTH_MOST = 256 };

bool tool_source_spend(uint64_t *left)
{
	if (*left == 0)
		return false;
	--*left;
	return true;
}

/* Moves to the next sibling. Returns false after the last one. */
static bool next_sibling(Dwarf_Die *die, uint64_t *left)
{
	const Dwarf_Off before = dwarf_dieoffset(die);

	return dwarf_siblingof(die, die) == 0 && dwarf_dieoffset(die) > before &&
	       tool_source_spend(left);
}

/* A walk over the ranges of addresses of an entry; all zero before the first one. `base` belongs to libdw, which
 * counts later ranges from it. */
struct ranges {
	ptrdiff_t at;
	Dwarf_Addr base, low, high;
};

static bool next_range(Dwarf_Die *die, struct ranges *ranges, uint64_t *left)
{
	ranges->at = dwarf_ranges(die, ranges->at, &ranges->base, &ranges->low, &ranges->high);
	return ranges->at > 0 && tool_source_spend(left);
}

/* ---- what is inlined into a function --------------------------------------------------------- */

static void add_inlined(struct tool_function *function, Dwarf_Die *die, unsigned depth,
			uint64_t *left)
{
	struct ranges ranges = {0};

	while (next_range(die, &ranges, left)) {
		struct tool_inlined *more =
			tool_with_room(function->inlined, function->inlined_count, sizeof(*more));

		if (more == NULL)
			return;
		function->inlined = more;
		more[function->inlined_count++] =
			(struct tool_inlined){ranges.low, ranges.high, depth, *die};
	}
}

static void walk_function(struct tool_function *function, Dwarf_Die *parent, unsigned depth,
			  uint64_t *left)
{
	Dwarf_Die die;

	if (depth == DEPTH_MOST || dwarf_child(parent, &die) != 0)
		return;
	do {
		const int tag = dwarf_tag(&die);

		if (tag == DW_TAG_inlined_subroutine)
			add_inlined(function, &die, depth, left);
		if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
		    tag == DW_TAG_try_block || tag == DW_TAG_catch_block)
			walk_function(function, &die, depth + 1, left);
	} while (next_sibling(&die, left));
}

/* ---- the functions of a unit ----------------------------------------------------------------- */

static void add_function(struct tool_functions *functions, Dwarf_Die *die, uint64_t *left)
{
	struct ranges ranges = {0};

	while (next_range(die, &ranges, left)) {
		struct tool_function *more =
			tool_with_room(functions->functions, functions->count, sizeof(*more));

		if (more == NULL)
			return;
		functions->functions = more;
		more[functions->count++] = (struct tool_function){
			.low = ranges.low,
			.high = ranges.high,
			.die = *die,
		};
	}
}

/* Whether functions are defined inside. Of C++ and Rust only declarations lie in classes. */
static bool is_scope(int tag, bool all)
{
	if (tag == DW_TAG_namespace || tag == DW_TAG_module)
		return true;
	return all && (tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
		       tag == DW_TAG_union_type || tag == DW_TAG_subprogram ||
		       tag == DW_TAG_lexical_block);
}

static void walk_scope(struct tool_functions *functions, Dwarf_Die *parent, unsigned depth,
		       uint64_t *left)
{
	Dwarf_Die die;

	if (depth == DEPTH_MOST || dwarf_child(parent, &die) != 0)
		return;
	do {
		const int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			add_function(functions, &die, left);
		if (is_scope(tag, functions->has_all))
			walk_scope(functions, &die, depth + 1, left);
	} while (next_sibling(&die, left));
}

static int by_low(const void *a, const void *b)
{
	const struct tool_function *left = a;
	const struct tool_function *right = b;

	return left->low < right->low ? -1 : left->low > right->low;
}

static void read_functions(struct tool_functions *functions, Dwarf_Die *unit, uint64_t *left)
{
	walk_scope(functions, unit, 0, left);
	if (functions->count > 0)
		qsort(functions->functions, functions->count, sizeof(*functions->functions),
		      by_low);
	functions->is_read = true;
}

void tool_functions_free(struct tool_functions *functions)
{
	for (uint32_t i = 0; i < functions->count; i++)
		free(functions->functions[i].inlined);
	free(functions->functions);
	*functions = (struct tool_functions){0};
}

static struct tool_function *search(const struct tool_functions *functions, Dwarf_Addr address)
{
	uint32_t low = 0;
	uint32_t high = functions->count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (functions->functions[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && address < functions->functions[low - 1].high
		       ? &functions->functions[low - 1]
		       : NULL;
}

/* Functions inside of others, as Fortran, Ada and gcc's C have them, are rare. So they are looked for only
 * where none of the others has an address of the unit. */
struct tool_function *tool_functions_find(struct tool_functions *functions, Dwarf_Die *unit,
					  Dwarf_Addr address, uint64_t *left)
{
	struct tool_function *function;

	if (!functions->is_read)
		read_functions(functions, unit, left);
	function = search(functions, address);
	if (function == NULL && !functions->has_all) {
		tool_functions_free(functions);
		functions->has_all = true;
		read_functions(functions, unit, left);
		function = search(functions, address);
	}
	if (function != NULL && !function->is_read)
		walk_function(function, &function->die, 0, left);
	if (function != NULL)
		function->is_read = true;
	return function;
}
