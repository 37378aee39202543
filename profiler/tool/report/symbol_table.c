/* SPDX-License-Identifier: MIT
 *
 * Sorts the symbols of a module once, and makes disjoint ranges of them, each with the symbol that counts
 * there. So a lookup is one binary search, whatever the file says.
 */
#include "symbol_table.h"

#include <stdbool.h>
#include <stdlib.h>

struct symbol {
	GElf_Addr start, end;
	const char *name;
	bool is_sized;
	unsigned char rank; /* of those that begin together, the lowest counts */
};

/* From `start` to the start of the next range. */
struct range {
	GElf_Addr start;
	const char *name; /* null: no symbol is here */
};

struct tool_symbol_table {
	struct range *ranges;
	size_t count;
};

/* ---- the symbols --------------------------------------------------------------------------- */

static bool is_code_or_data(const GElf_Sym *symbol, GElf_Word section)
{
	const unsigned type = GELF_ST_TYPE(symbol->st_info);

	return section != SHN_UNDEF && section != SHN_ABS && section != SHN_COMMON &&
	       type != STT_SECTION && type != STT_FILE && type != STT_TLS;
}

static unsigned char rank_of(const GElf_Sym *symbol)
{
	const unsigned binding = GELF_ST_BIND(symbol->st_info);

	return binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 1 : 2;
}

/* Returns the end of the section that has a symbol; the symbol's own address if there is none. */
static GElf_Addr section_end(Elf *elf, GElf_Word section, const GElf_Sym *symbol, GElf_Addr address)
{
	GElf_Shdr header;

	if (elf == NULL || gelf_getshdr(elf_getscn(elf, section), &header) == NULL ||
	    symbol->st_value < header.sh_addr ||
	    symbol->st_value - header.sh_addr >= header.sh_size)
		return address;
	return address + (header.sh_size - (symbol->st_value - header.sh_addr));
}

static bool read_symbol(Dwfl_Module *module, int number, struct symbol *symbol)
{
	GElf_Word section = SHN_UNDEF;
	GElf_Addr address;
	GElf_Sym sym;
	Elf *elf = NULL;
	Dwarf_Addr bias;
	const char *name =
		dwfl_module_getsym_info(module, number, &sym, &address, &section, &elf, &bias);

	if (name == NULL || name[0] == 0 || !is_code_or_data(&sym, section))
		return false;
	*symbol = (struct symbol){.start = address,
				  .end = address + sym.st_size,
				  .name = name,
				  .is_sized = sym.st_size != 0,
				  .rank = rank_of(&sym)};
	if (!symbol->is_sized)
		symbol->end = section_end(elf, section, &sym, address);
	return symbol->end > symbol->start;
}

/* Of those that begin together, the one that counts comes last. */
static int by_start(const void *a, const void *b)
{
	const struct symbol *left = a;
	const struct symbol *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	if (left->is_sized != right->is_sized)
		return left->is_sized ? 1 : -1;
	if (left->rank != right->rank)
		return left->rank > right->rank ? -1 : 1;
	if (left->end != right->end)
		return left->end > right->end ? -1 : 1;
	return left->name < right->name ? -1 : left->name > right->name;
}

/* ---- ranges --------------------------------------------------------------------------------- */

/* The symbols that have begun and not ended. The one that begins last is on top. */
struct sweep {
	struct tool_symbol_table *table;
	const struct symbol **open;
	size_t open_count;
	const struct symbol *label; /* the last one without a size */
};

static void begin_range(struct tool_symbol_table *table, GElf_Addr start, const char *name)
{
	if (table->count > 0 && table->ranges[table->count - 1].start == start)
		table->count--;
	table->ranges[table->count++] = (struct range){start, name};
}

/* Begins the range of what counts at `at`, where no symbol begins. */
static void begin_rest(struct sweep *sweep, GElf_Addr at)
{
	const char *name = NULL;

	while (sweep->open_count > 0 && sweep->open[sweep->open_count - 1]->end <= at)
		sweep->open_count--;
	if (sweep->open_count > 0)
		name = sweep->open[sweep->open_count - 1]->name;
	begin_range(sweep->table, at, name);
}

static void end_before(struct sweep *sweep, GElf_Addr limit)
{
	while (sweep->open_count > 0 && sweep->open[sweep->open_count - 1]->end <= limit)
		begin_rest(sweep, sweep->open[sweep->open_count - 1]->end);
	if (sweep->label != NULL && sweep->label->end <= limit) {
		begin_range(sweep->table, sweep->label->end, NULL);
		sweep->label = NULL;
	}
}

static void add_symbol(struct sweep *sweep, const struct symbol *symbol)
{
	end_before(sweep, symbol->start);
	if (symbol->is_sized) {
		sweep->label = NULL;
		sweep->open[sweep->open_count++] = symbol;
	} else if (sweep->open_count > 0) {
		return;
	} else {
		sweep->label = symbol;
	}
	begin_range(sweep->table, symbol->start, symbol->name);
}

static size_t read_symbols(Dwfl_Module *module, struct symbol *symbols, int count)
{
	size_t kept = 0;

	for (int i = 0; i < count; i++)
		kept += read_symbol(module, i, &symbols[kept]);
	qsort(symbols, kept, sizeof(*symbols), by_start);
	return kept;
}

/* A symbol begins at most two ranges: its own, and that behind it. */
static bool fill(struct tool_symbol_table *table, Dwfl_Module *module, int most)
{
	struct symbol *symbols = calloc((size_t)most + 1, sizeof(*symbols));
	struct sweep sweep = {.table = table,
			      .open = calloc((size_t)most + 1, sizeof(struct symbol *))};
	bool has_room;
	size_t count;

	table->ranges = calloc(2 * (size_t)most + 1, sizeof(*table->ranges));
	has_room = symbols != NULL && sweep.open != NULL && table->ranges != NULL;
	count = has_room ? read_symbols(module, symbols, most) : 0;

	for (size_t i = 0; i < count; i++)
		add_symbol(&sweep, &symbols[i]);
	end_before(&sweep, UINT64_MAX);
	free(symbols);
	free(sweep.open);
	return has_room;
}

struct tool_symbol_table *tool_symbol_table_make(Dwfl_Module *module)
{
	struct tool_symbol_table *table = calloc(1, sizeof(*table));
	const int count = dwfl_module_getsymtab(module);

	if (table != NULL && fill(table, module, count > 0 ? count : 0))
		return table;
	tool_symbol_table_free(table);
	return NULL;
}

void tool_symbol_table_free(struct tool_symbol_table *table)
{
	if (table != NULL)
		free(table->ranges);
	free(table);
}

const char *tool_symbol_table_find(const struct tool_symbol_table *table, GElf_Addr address)
{
	size_t low = 0;
	size_t high = table->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (table->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? table->ranges[low - 1].name : NULL;
}
