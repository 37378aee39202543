/* SPDX-License-Identifier: MIT
 *
 * Loads libunwind only for --crosscheck, because loading takes long (D89). src/native calls the functions
 * below by the names that libunwind's header gives them.
 */
#include <dlfcn.h>
#include <stddef.h>

#include <libunwind.h>

#include "recorder/code/code.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

static const char library[] = "libunwind-x86_64.so.8";

unw_addr_space_t unw_local_addr_space;

/* A function of libunwind that no header declares. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip,
					      unw_dyn_info_t *table, unw_proc_info_t *info,
					      int need, void *arg);

/* The number of each function, the type of its result, its name, parameters and arguments. */
#define FUNCTIONS(X) \
	X(0, unw_addr_space_t, unw_create_addr_space, (unw_accessors_t * calls, int order), \
	  (calls, order)) \
	X(1, unw_accessors_t *, unw_get_accessors, (unw_addr_space_t space), (space)) \
	X(2, int, unw_set_caching_policy, (unw_addr_space_t space, unw_caching_policy_t policy), \
	  (space, policy)) \
	X(3, int, unw_init_remote, (unw_cursor_t * cursor, unw_addr_space_t space, void *arg), \
	  (cursor, space, arg)) \
	X(4, int, unw_step, (unw_cursor_t * cursor), (cursor)) \
	X(5, int, unw_get_reg, (unw_cursor_t * cursor, int number, unw_word_t *value), \
	  (cursor, number, value)) \
	X(6, int, unw_get_save_loc, (unw_cursor_t * cursor, int number, unw_save_loc_t *place), \
	  (cursor, number, place)) \
	X(7, int, unw_is_signal_frame, (unw_cursor_t * cursor), (cursor)) \
	X(8, int, UNW_OBJ(dwarf_search_unwind_table), \
	  (unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t * table, unw_proc_info_t * info, \
	   int need, void *arg), \
	  (space, ip, table, info, need, arg)) \
	X(9, void, unw_destroy_addr_space, (unw_addr_space_t space), (space)) \
	X(10, void, unw_flush_cache, (unw_addr_space_t space, unw_word_t low, unw_word_t high), \
	  (space, low, high))
enum { COUNT = 11 };

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name) /* of what the header's macros make of the name */
#define NAME(number, result, name, parameters, arguments) [number] = TEXT(name),
static const char *const names[COUNT] = {FUNCTIONS(NAME)};

static void *found[COUNT];

#define DEFINE(number, result, name, parameters, arguments) \
	result name parameters \
	{ \
		return ((__typeof__(&(name)))found[number])arguments; \
	}
FUNCTIONS(DEFINE)

int incstack__record_libunwind(void)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	const unw_addr_space_t *local = handle ? dlsym(handle, TEXT(unw_local_addr_space)) : NULL;

	if (!local)
		return -1;
	unw_local_addr_space = *local;
	for (int i = 0; i < COUNT; i++) {
		found[i] = dlsym(handle, names[i]);
		if (!found[i])
			return -1;
	}
	return 0;
}
