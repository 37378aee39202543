/* SPDX-License-Identifier: MIT
 *
 * Reads unwind rules from a copy of an object of another process. The object may be damaged, or no
 * object at all, so each place is checked before it is read.
 */
#include <stddef.h>
#include <string.h>

#include "elf/unwind_index.h"
#include "image.h"
#include "native.h"

/* The unwind table of a function is not longer; that of a large one has some thousand bytes. As the
 * whole of it may be read for one address, its length limits the time for that. */
enum { ENTRY_MOST = 256 << 10 };

static uint32_t word_at(uintptr_t at)
{
	uint32_t word;

	memcpy(&word, (const void *)at, sizeof(word));
	return word;
}

/* Whether a CIE or FDE lies in the image: its length, then so many bytes. */
static bool has_entry(const struct incstack__elf_image *image, uintptr_t entry)
{
	return incstack__elf_has(image, entry, 2 * sizeof(uint32_t)) &&
	       word_at(entry) >= sizeof(uint32_t) && word_at(entry) <= ENTRY_MOST &&
	       incstack__elf_has(image, entry, sizeof(uint32_t) + (uint64_t)word_at(entry));
}

bool incstack__native_image_rule(const struct incstack__native_image *image, uintptr_t address,
				 struct incstack_rule *rule)
{
	const struct incstack__elf_image *bytes = &image->bytes;
	const struct incstack__elf_unwind_index *index =
		incstack__elf_unwind_index_in(bytes, image->header);
	uintptr_t fde;
	uintptr_t back;

	if (!index)
		return false;
	fde = (uintptr_t)incstack__elf_unwind_entry(index, address);
	if (!has_entry(bytes, fde))
		return false;
	back = fde + sizeof(uint32_t);
	if (!has_entry(bytes, back - word_at(back)))
		return false;
	return incstack__native_fde_rule((const void *)fde, address, rule);
}

bool incstack__native_image_follows_call(const struct incstack__native_image *image,
					 uintptr_t address)
{
	enum { LONGEST_CALL = 7 };

	return incstack__elf_has(&image->bytes, address - LONGEST_CALL, LONGEST_CALL) &&
	       incstack__native_follows_call(address);
}
