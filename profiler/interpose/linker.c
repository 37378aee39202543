/* SPDX-License-Identifier: MIT
 *
 * Copies the dynamic linker's data before the recorder is loaded. The recorder finds the linker's
 * counters by the words that have changed after that (recorder/code/linker.c).
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "stub.h"

static struct incstack__linker_view view;

/* Copies the data while the linker's lock is held, so that nothing changes in the meantime. */
static int copy(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	view.adds = info->dlpi_adds;
	view.subs = info->dlpi_subs;
	memcpy(view.copy, view.data, view.words * sizeof(view.copy[0]));
	return 1;
}

/* _rtld_global is a private object of glibc. The size of its symbol says how long it is. */
const struct incstack__linker_view *incstack__stub_view_linker(void)
{
	const struct link_map *map;
	const ElfW(Sym) *symbol = incstack__stub_symbol("_rtld_global", &map);

	if (!symbol || symbol->st_size > sizeof(view.copy))
		return &view;
	view.data = (const uint32_t *)(map->l_addr + symbol->st_value);
	view.words = symbol->st_size / sizeof(view.copy[0]);
	dl_iterate_phdr(copy, NULL);
	return &view;
}
