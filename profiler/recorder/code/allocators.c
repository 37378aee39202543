/* SPDX-License-Identifier: MIT
 *
 * Looks for allocation functions whose calls the recorder does not see, and notes them. These are
 * functions that the program defines for itself, and functions that only some allocators have.
 */
#include <link.h>

#include "elf/symbols.h"
#include "loaded.h"
#include "recorder/code/code.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

/* The functions of jemalloc, tcmalloc, mimalloc and Intel's TBB, and the functions of C23 that libc
 * may lack. They are not interposed, because a program asks whether they exist before it calls
 * them. */
static const char *const special[] = {
	"mallocx",
	"rallocx",
	"xallocx",
	"dallocx",
	"sdallocx",
	"je_malloc",
	"je_free",
	"tc_malloc",
	"tc_calloc",
	"tc_realloc",
	"tc_free",
	"tc_new",
	"tc_delete",
	"mi_malloc",
	"mi_calloc",
	"mi_realloc",
	"mi_zalloc",
	"mi_free",
	"mi_new",
	"scalable_malloc",
	"scalable_free",
	"free_sized",
	"free_aligned_sized",
};
enum { SPECIAL = sizeof(special) / sizeof(special[0]) };
_Static_assert(SPECIAL <= 32, "bits of a word");

struct search {
	uint32_t defined, called; /* bits of the names in the table above */
	int objects;
};

static bool symbols_of(const struct dl_phdr_info *info, struct incstack__native_pages *pages,
		       struct incstack__elf_symbols *symbols)
{
	const struct incstack__elf_layout layout = incstack__loaded_layout(info);

	return incstack__elf_symbols_read(symbols, incstack__loaded_memory(pages), info->dlpi_addr,
					  (const void *)layout.dynamic);
}

/* The program calls its own definitions, not those of preloaded objects. */
static void look_at_program(const struct incstack__elf_symbols *symbols)
{
	if (incstack__elf_symbol(symbols, "malloc"))
		incstack__record_note_for_good(INCSTACK__NOTE_OWN_MALLOC);
	if (incstack__elf_symbol(symbols, "_Znwm"))
		incstack__record_note_for_good(INCSTACK__NOTE_OWN_NEW);
}

/* The first object is the program. */
static int look_for_definitions(struct dl_phdr_info *info, size_t size, void *context)
{
	struct search *search = context;
	struct incstack__native_pages pages = {0, 0};
	struct incstack__elf_symbols symbols;
	const bool is_program = search->objects++ == 0;

	(void)size;
	if (!symbols_of(info, &pages, &symbols))
		return 0;
	if (is_program)
		look_at_program(&symbols);
	for (int i = 0; i < SPECIAL; i++)
		if (incstack__elf_symbol(&symbols, special[i]))
			search->defined |= 1u << i;
	return 0;
}

/* The symbols that an object takes from others come before those that are in its hash table. */
static int look_for_calls(struct dl_phdr_info *info, size_t size, void *context)
{
	struct search *search = context;
	struct incstack__native_pages pages = {0, 0};
	struct incstack__elf_symbols symbols;
	const ElfW(Sym) * symbol;

	(void)size;
	if (!symbols_of(info, &pages, &symbols))
		return 0;
	for (uint32_t i = 1; i < symbols.imports; i++) {
		symbol = incstack__elf_symbol_at(&symbols, i);
		for (int k = 0; k < SPECIAL && symbol && symbol->st_shndx == SHN_UNDEF; k++)
			if (search->defined & 1u << k &&
			    incstack__elf_symbol_has_name(&symbols, symbol,
							  incstack__elf_name(special[k])))
				search->called |= 1u << k;
	}
	return search->called != 0;
}

void incstack__record_host_allocators(void)
{
	struct search search = {0};

	dl_iterate_phdr(look_for_definitions, &search);
	if (search.defined != 0)
		dl_iterate_phdr(look_for_calls, &search);
	if (search.called != 0)
		incstack__record_note_for_good(INCSTACK__NOTE_SPECIAL_ALLOCATOR);
}
