/* SPDX-License-Identifier: MIT
 *
 * Reads unwind rules from a copy of an object of another process. The object may be damaged, or no
 * object at all, so each place is checked before it is read.
 */
#include <stddef.h>
#include <string.h>

#include "image.h"
#include "native.h"

/* The unwind table of a function is not longer; that of a large one has some thousand bytes. As the
 * whole of it may be read for one address, its length limits the time for that. */
enum { ENTRY_MOST = 256 << 10 };

static bool has(const struct incstack__native_image *image, uintptr_t at, uint64_t bytes)
{
	return at >= image->low && at <= image->high && image->high - at >= bytes &&
	       (image->get == NULL || image->get(image->context, at, bytes));
}

static uint32_t word_at(uintptr_t at)
{
	uint32_t word;

	memcpy(&word, (const void *)at, sizeof(word));
	return word;
}

/* Whether the header and its sorted index lie in the image. */
static bool has_index(const struct incstack__native_image *image)
{
	enum { COUNT = 8, HEAD = 12, PAIR = 8 };

	return image->header != 0 && has(image, image->header, HEAD) &&
	       has(image, image->header, HEAD + PAIR * (uint64_t)word_at(image->header + COUNT));
}

/* Whether a CIE or FDE lies in the image: its length, then so many bytes. */
static bool has_entry(const struct incstack__native_image *image, uintptr_t entry)
{
	return has(image, entry, 2 * sizeof(uint32_t)) && word_at(entry) >= sizeof(uint32_t) &&
	       word_at(entry) <= ENTRY_MOST &&
	       has(image, entry, sizeof(uint32_t) + (uint64_t)word_at(entry));
}

bool incstack__native_image_rule(const struct incstack__native_image *image, uintptr_t address,
				 struct incstack_rule *rule)
{
	uintptr_t fde;
	uintptr_t back;

	if (!has_index(image))
		return false;
	fde = (uintptr_t)incstack__native_entry_of((const void *)image->header, address);
	if (fde == 0 || !has_entry(image, fde))
		return false;
	back = fde + sizeof(uint32_t);
	if (!has_entry(image, back - word_at(back)))
		return false;
	return incstack__native_fde_rule((const void *)fde, address, rule);
}

bool incstack__native_image_follows_call(const struct incstack__native_image *image,
					 uintptr_t address)
{
	enum { LONGEST_CALL = 7 };

	return address >= image->low + LONGEST_CALL && address <= image->high &&
	       has(image, address - LONGEST_CALL, LONGEST_CALL) &&
	       incstack__native_follows_call(address);
}
