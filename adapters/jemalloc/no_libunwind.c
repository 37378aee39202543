/* SPDX-License-Identifier: MIT
 *
 * src/native refers to libunwind for rules that no table of the usual form has, and for comparisons. The adapter
 * uses neither: libunwind waits for locks. These functions keep it out of the process.
 */
#include <stddef.h>

#include <libunwind.h>

unw_addr_space_t unw_local_addr_space;

unw_addr_space_t unw_create_addr_space(unw_accessors_t *calls, int order)
{
	(void)calls;
	(void)order;
	return NULL;
}

unw_accessors_t *unw_get_accessors(unw_addr_space_t space)
{
	(void)space;
	return NULL;
}

int unw_set_caching_policy(unw_addr_space_t space, unw_caching_policy_t policy)
{
	(void)space;
	(void)policy;
	return -UNW_EUNSPEC;
}

int unw_init_remote(unw_cursor_t *cursor, unw_addr_space_t space, void *context)
{
	(void)cursor;
	(void)space;
	(void)context;
	return -UNW_EUNSPEC;
}

int unw_step(unw_cursor_t *cursor)
{
	(void)cursor;
	return -UNW_EUNSPEC;
}

int unw_get_reg(unw_cursor_t *cursor, int number, unw_word_t *value)
{
	(void)cursor;
	(void)number;
	(void)value;
	return -UNW_EUNSPEC;
}

int unw_get_save_loc(unw_cursor_t *cursor, int number, unw_save_loc_t *place)
{
	(void)cursor;
	(void)number;
	(void)place;
	return -UNW_EUNSPEC;
}

void unw_destroy_addr_space(unw_addr_space_t space)
{
	(void)space;
}
