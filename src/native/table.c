/* SPDX-License-Identifier: MIT
 *
 * Where the unwind table of an address is: _dl_find_object knows the object that was
 * loaded there, without a lock, and its .eh_frame_hdr is a sorted index.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#include "native.h"

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* _dl_find_object: glibc 2.35 */

struct header {
	unsigned char version, frame_encoding, count_encoding, table_encoding;
	int32_t frame;
	uint32_t count;
	struct {
		int32_t low, fde; /* relative to the header */
	} table[];
};

/* All linkers write the index so; another is libunwind's matter. */
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

bool incstack__native_cfi_rule(uintptr_t address, struct incstack_rule *rule)
{
	struct dl_find_object object;
	const struct header *header;

	if (_dl_find_object((void *)address, &object) != 0 || !object.dlfo_eh_frame)
		return false;
	header = object.dlfo_eh_frame;
	return is_common(header) &&
	       incstack__native_fde_rule(fde_of(header, address), address, rule);
}

#else /* libunwind does it all */

bool incstack__native_cfi_rule(uintptr_t address, struct incstack_rule *rule)
{
	(void)address;
	(void)rule;
	return false;
}

#endif
