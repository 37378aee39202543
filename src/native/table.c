/* SPDX-License-Identifier: MIT
 *
 * Finds the unwind table of an address. _dl_find_object finds the object that is loaded there
 * without taking a lock, and the object's .eh_frame_hdr is a sorted index of its table. Before
 * glibc 2.35, dl_iterate_phdr is used, which takes the dynamic linker's lock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

#include "native.h"

/* Packed: a file may say that its index begins at any address. */
struct __attribute__((packed)) header {
	unsigned char version, frame_encoding, count_encoding, table_encoding;
	int32_t frame;
	uint32_t count;
	struct __attribute__((packed)) {
		int32_t low, fde; /* relative to the header */
	} table[];
};

/* Whether the index has the encoding that all linkers use. No other encoding is read. */
static bool is_common(const struct header *h)
{
	enum { DATA4 = 0x03, SIGNED_RELATIVE_4 = 0x1b, SIGNED_FROM_HERE_4 = 0x3b };

	return h->version == 1 && h->frame_encoding == SIGNED_RELATIVE_4 &&
	       h->count_encoding == DATA4 && h->table_encoding == SIGNED_FROM_HERE_4 &&
	       h->count != 0;
}

static const void *fde_of(const struct header *h, uintptr_t address)
{
	const int64_t wanted = (int64_t)(address - (uintptr_t)h);
	uint32_t low = 0;
	uint32_t high = h->count;

	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;

		if (h->table[middle].low <= wanted)
			low = middle;
		else
			high = middle;
	}
	return (const char *)h + h->table[low].fde;
}

struct object {
	const struct header *header;
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

struct search {
	uintptr_t address;
	struct object *object;
};

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	const struct search *search = context;
	struct object object = {NULL, UINTPTR_MAX, 0};

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t low = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && low < object.low)
			object.low = low;
		if (p->p_type == PT_LOAD && low + p->p_memsz > object.high)
			object.high = low + p->p_memsz;
		if (p->p_type == PT_GNU_EH_FRAME)
			object.header = (const void *)low;
	}
	*search->object = object;
	return search->address >= object.low && search->address < object.high;
}

static bool find(uintptr_t address, struct object *found)
{
	struct search search = {address, found};

	return dl_iterate_phdr(look, &search) == 1;
}

#endif

bool incstack__native_find_index(uintptr_t address, struct incstack__native_index *index)
{
	struct object object;
	const struct header *h;

	if (!find(address, &object) || !object.header || !is_common(object.header))
		return false;
	h = object.header;
	*index = (struct incstack__native_index){(uintptr_t)h, (uintptr_t)h->table, h->count,
						 object.low, object.high};
	return true;
}

const void *incstack__native_entry_of(const void *header, uintptr_t address)
{
	return is_common(header) ? fde_of(header, address) : NULL;
}

bool incstack__native_cfi_rule(uintptr_t address, struct incstack_rule *rule)
{
	struct object object;
	const void *fde = NULL;

	if (find(address, &object) && object.header)
		fde = incstack__native_entry_of(object.header, address);
	return fde && incstack__native_fde_rule(fde, address, rule);
}
