/* SPDX-License-Identifier: MIT
 *
 * Finds the unwind table of an address. _dl_find_object finds the object that is loaded there
 * without taking a lock, and the object's .eh_frame_hdr is a sorted index of its table. Before
 * glibc 2.35, dl_iterate_phdr is used, which takes the dynamic linker's lock.
 */
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

#include "elf/elf_layout.h"
#include "elf/unwind_index.h"
#include "native.h"

struct object {
	const struct incstack__elf_unwind_index *index;
	uintptr_t low, high;
};

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* _dl_find_object: glibc 2.35 */

const bool incstack__native_finds_in_handlers = true;

static bool find(uintptr_t address, struct object *found)
{
	struct dl_find_object object;

	if (_dl_find_object((void *)address, &object) != 0)
		return false;
	*found = (struct object){object.dlfo_eh_frame, (uintptr_t)object.dlfo_map_start,
				 (uintptr_t)object.dlfo_map_end};
	return true;
}

#else

const bool incstack__native_finds_in_handlers = false;

static bool find(uintptr_t address, struct object *found)
{
	struct incstack__elf_search search = {.address = address};

	if (dl_iterate_phdr(incstack__elf_contains, &search) == 0)
		return false;
	*found = (struct object){(const void *)search.layout.unwind_index, search.layout.low,
				 search.layout.high};
	return true;
}

#endif

static bool has_index(uintptr_t address, struct object *found)
{
	return find(address, found) && found->index &&
	       incstack__elf_unwind_index_is_usual(found->index);
}

bool incstack__native_find_index(uintptr_t address, struct incstack__native_index *index)
{
	struct object object;

	if (!has_index(address, &object))
		return false;
	*index = (struct incstack__native_index){(uintptr_t)object.index,
						 (uintptr_t)object.index->table,
						 object.index->count, object.low, object.high};
	return true;
}

bool incstack__native_cfi_rule(uintptr_t address, struct incstack_rule *rule)
{
	struct object object;

	return has_index(address, &object) &&
	       incstack__native_fde_rule(incstack__elf_unwind_entry(object.index, address), address,
					 rule);
}
