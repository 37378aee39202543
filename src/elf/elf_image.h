/* SPDX-License-Identifier: MIT
 *
 * An ELF object in memory. The readers of this folder read nothing outside of its bounds.
 */
#ifndef INCSTACK__ELF_IMAGE_H
#define INCSTACK__ELF_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

struct incstack__elf_image {
	uintptr_t low, high;
	/* Called before bytes in the bounds are read. Returns false if they cannot be read. Null: all
	 * bytes in the bounds can be read. */
	bool (*get)(void *context, uintptr_t at, uint64_t bytes);
	void *context;
};

/* Has no bounds: an object of this process whose memory nobody takes away. */
#define INCSTACK__ELF_WHOLE_MEMORY ((struct incstack__elf_image){0, UINTPTR_MAX, 0, 0})

static inline bool incstack__elf_has(const struct incstack__elf_image *image, uintptr_t at,
				     uint64_t bytes)
{
	return at >= image->low && at <= image->high && image->high - at >= bytes &&
	       (!image->get || image->get(image->context, at, bytes));
}

#endif
