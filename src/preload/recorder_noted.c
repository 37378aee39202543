/* SPDX-License-Identifier: MIT
 *
 * Whether a list of modules is still true, without waiting for the dynamic linker's lock:
 * the thread that has it may wait for a lock of the program that the caller holds, or be
 * stopped by the recorder. The unwind rule of each address is asked for once, and then its
 * module is noted; so a list is too short if a module was noted after it was made. And each
 * module of the list is looked for where it was.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "recorder_modules.h"

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* _dl_find_object: glibc 2.35 */

enum { NOTED_MAX = 4096 };

struct noted {
	uintptr_t low;
	uintptr_t high;
	uintptr_t bias;
	struct noted *older;
};

static struct noted noted[NOTED_MAX];
static size_t used;
static struct noted *newest;
static int has_new = 1;

/* Two threads may note the same one; a jump out of a handler leaves it out or in. Where
 * there is no more room, each new address counts as one of a new module. */
static void note(const struct noted *found)
{
	const size_t at = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
	struct noted *module = at < NOTED_MAX ? &noted[at] : NULL;

	if (module != NULL) {
		*module = *found;
		module->older = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
		while (!__atomic_compare_exchange_n(&newest, &module->older, module, 0,
						    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			;
	}
	__atomic_store_n(&has_new, 1, __ATOMIC_RELEASE);
}

static int find(uintptr_t address, struct noted *found)
{
	struct dl_find_object object;

	if (_dl_find_object((void *)address, &object) != 0)
		return -1;
	*found = (struct noted){(uintptr_t)object.dlfo_map_start, (uintptr_t)object.dlfo_map_end,
				object.dlfo_link_map->l_addr, NULL};
	return 0;
}

void incstack__record_noted(uintptr_t address)
{
	struct noted found;

	if (find(address, &found) != 0)
		return;
	for (const struct noted *i = __atomic_load_n(&newest, __ATOMIC_ACQUIRE); i != NULL;
	     i = i->older)
		if (i->low == found.low && i->high == found.high && i->bias == found.bias)
			return;
	note(&found);
}

void incstack__record_noted_forget(void)
{
	__atomic_store_n(&newest, NULL, __ATOMIC_RELEASE);
}

/* The vDSO has no path, and stays. A module that was opened by a relative path is known by its
 * place alone, for the list has another path of it. */
static int is_there(const struct incstack__record_entry *entry)
{
	const char *path = (const char *)entry->at + sizeof(entry->module);
	const size_t length = entry->module.path_length;
	struct dl_find_object object;
	const char *name;

	if (memchr(path, '/', length) == NULL)
		return 1;
	if (_dl_find_object((void *)(uintptr_t)entry->module.low, &object) != 0 ||
	    object.dlfo_link_map->l_addr != entry->module.bias)
		return 0;
	name = object.dlfo_link_map->l_name;
	return *name != '/' || (strncmp(name, path, length) == 0 && name[length] == '\0');
}

static int is_listed(const struct incstack__record_list *list, const struct noted *module)
{
	struct incstack__record_entry entry;

	for (size_t at = 0; incstack__record_list_next(list, &at, &entry);)
		if (entry.module.bias == module->bias && entry.module.low >= module->low &&
		    entry.module.low < module->high)
			return 1;
	return 0;
}

static int are_listed(const struct incstack__record_list *list)
{
	const struct noted *module = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&used, __ATOMIC_RELAXED) > NOTED_MAX)
		return 0;
	while (module != NULL && is_listed(list, module))
		module = module->older;
	return module == NULL;
}

int incstack__record_list_is_true(const struct incstack__record_list *list)
{
	struct incstack__record_entry entry;

	if (__atomic_exchange_n(&has_new, 0, __ATOMIC_ACQ_REL) && !are_listed(list))
		return 0;
	for (size_t at = 0; incstack__record_list_next(list, &at, &entry);)
		if (!is_there(&entry))
			return 0;
	return 1;
}

#else

void incstack__record_noted(uintptr_t address)
{
	(void)address;
}

void incstack__record_noted_forget(void)
{
}

int incstack__record_list_is_true(const struct incstack__record_list *list)
{
	(void)list;
	return 0;
}

#endif
