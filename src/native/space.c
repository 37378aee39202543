/* SPDX-License-Identifier: MIT
 *
 * Makes address spaces for libunwind. It has the callbacks that are the same for all of them.
 * The caller provides those that read tables, memory and registers. Those that read memory
 * find out here which pages are readable.
 */
#include <stdbool.h>

#include <libunwind.h>

#include "native.h"

#define PAGE ((uintptr_t)4096)

static bool has_page(struct incstack__native_pages *pages, uintptr_t page)
{
	if (page >= pages->low && page < pages->high)
		return true;
	if (!incstack__page_readable(page))
		return false;
	pages->low = page == pages->high ? pages->low : page;
	pages->high = page + PAGE;
	return true;
}

bool incstack__native_pages_readable(struct incstack__native_pages *pages, uintptr_t address)
{
	if (address >= pages->low && address < pages->high)
		return true;
	return address % sizeof(uintptr_t) == 0 && has_page(pages, address & ~(PAGE - 1));
}

bool incstack__native_readable(void *pages, uintptr_t at, uint64_t bytes)
{
	const uintptr_t last = (at + bytes - 1) & ~(PAGE - 1);

	for (uintptr_t page = at & ~(PAGE - 1); bytes != 0; page += PAGE) {
		if (!has_page(pages, page))
			return false;
		if (page == last)
			return true;
	}
	return true;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *arg)
{
	unw_accessors_t *local = unw_get_accessors(unw_local_addr_space);

	(void)space;
	(void)arg;
	local->put_unwind_info(unw_local_addr_space, info, NULL);
}

static int get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t *list, void *arg)
{
	(void)space;
	(void)list;
	(void)arg;
	return -UNW_ENOINFO;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int write,
			void *arg)
{
	(void)space;
	(void)reg;
	(void)value;
	(void)write;
	(void)arg;
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg)
{
	(void)space;
	(void)cursor;
	(void)arg;
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t space, unw_word_t address, char *name, size_t size,
			 unw_word_t *offset, void *arg)
{
	(void)space;
	(void)address;
	(void)name;
	(void)size;
	(void)offset;
	(void)arg;
	return -UNW_ENOINFO;
}

unw_addr_space_t incstack__native_space_make(unw_addr_space_t *made, unw_accessors_t accessors,
					     unw_caching_policy_t policy)
{
	unw_addr_space_t space = __atomic_load_n(made, __ATOMIC_ACQUIRE);
	unw_addr_space_t mine;

	if (space)
		return space;
	accessors.put_unwind_info = put_unwind_info;
	accessors.get_dyn_info_list_addr = get_dyn_info_list_addr;
	accessors.access_fpreg = access_fpreg;
	accessors.resume = resume;
	accessors.get_proc_name = get_proc_name;
	mine = unw_create_addr_space(&accessors, 0); /* it copies the accessors */
	if (!mine)
		return NULL;
	unw_set_caching_policy(mine, policy);
	if (__atomic_compare_exchange_n(made, &space, mine, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return mine;
	unw_destroy_addr_space(mine);
	return space;
}
