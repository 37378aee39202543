/* SPDX-License-Identifier: MIT
 *
 * .eh_frame_hdr: the index of an object's unwind information, sorted by functions.
 */
#ifndef INCSTACK__ELF_UNWIND_INDEX_H
#define INCSTACK__ELF_UNWIND_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "elf_image.h"

/* Packed: a file may say that its index begins at any address. */
struct __attribute__((packed)) incstack__elf_unwind_index {
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	int32_t frame;
	uint32_t count;
	struct __attribute__((packed)) {
		int32_t low, fde; /* a function and its entry, relative to the index */
	} table[];
};

/* Whether the index has entries, in the encoding that all linkers use. No other encoding is read. */
static inline bool
incstack__elf_unwind_index_is_usual(const struct incstack__elf_unwind_index *index)
{
	enum { DATA4 = 0x03, SIGNED_RELATIVE_4 = 0x1b, SIGNED_FROM_HERE_4 = 0x3b };
	return index->version == 1 && index->frame_encoding == SIGNED_RELATIVE_4 &&
	       index->count_encoding == DATA4 && index->table_encoding == SIGNED_FROM_HERE_4 &&
	       index->count != 0;
}

/* Returns the index if the image has all of it and the index is usual, else null. */
static inline const struct incstack__elf_unwind_index *
incstack__elf_unwind_index_in(const struct incstack__elf_image *image, uintptr_t at)
{
	const struct incstack__elf_unwind_index *index = (const void *)at;
	return at != 0 && incstack__elf_has(image, at, sizeof(*index)) &&
			       incstack__elf_unwind_index_is_usual(index) &&
			       incstack__elf_has(image, at,
						 sizeof(*index) + (uint64_t)index->count *
									  sizeof(index->table[0]))
		       ? index
		       : 0;
}

/* Returns the number of the last function that begins at or before the address, which is relative to the
 * index; or 0. */
static inline uint32_t
incstack__elf_unwind_index_find(const struct incstack__elf_unwind_index *index, int64_t address)
{
	uint32_t low = 0;
	uint32_t high = index->count;
	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;
		if (index->table[middle].low <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Returns the unwind entry that may describe the address. */
static inline const void *incstack__elf_unwind_entry(const struct incstack__elf_unwind_index *index,
						     uintptr_t address)
{
	const int64_t wanted = (int64_t)(address - (uintptr_t)index);
	return (const char *)index +
	       index->table[incstack__elf_unwind_index_find(index, wanted)].fde;
}

#endif
