/* SPDX-License-Identifier: MIT
 *
 * See loaded.h.
 */
#include "loaded.h"
#include "trace/shared.h"

#define PAGE ((uintptr_t)4096)

static bool has_page(struct incstack__loaded_pages *pages, uintptr_t page)
{
	if (page >= pages->low && page < pages->high)
		return true;
	if (!incstack__page_readable(page))
		return false;
	pages->low = page == pages->high ? pages->low : page;
	pages->high = page + PAGE;
	return true;
}

bool incstack__loaded_has(void *context, uintptr_t at, uint64_t bytes)
{
	for (uintptr_t page = at & ~(PAGE - 1); page < at + bytes; page += PAGE)
		if (!has_page(context, page))
			return false;
	return true;
}

struct incstack__elf_image incstack__loaded_memory(struct incstack__loaded_pages *pages)
{
	return (struct incstack__elf_image){0, UINTPTR_MAX, incstack__loaded_has, pages};
}

struct incstack__elf_layout incstack__loaded_layout(const struct dl_phdr_info *info)
{
	struct incstack__loaded_pages pages = {0, 0};
	const uintptr_t at = (uintptr_t)info->dlpi_phdr;
	const bool has =
		incstack__loaded_has(&pages, at, info->dlpi_phnum * sizeof(info->dlpi_phdr[0]));

	return incstack__elf_layout(info->dlpi_addr, info->dlpi_phdr, has ? info->dlpi_phnum : 0);
}
