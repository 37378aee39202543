/* SPDX-License-Identifier: MIT
 *
 * The objects that the dynamic linker has loaded. A program may cut off the file of a library that it has
 * loaded, or unmap a part of the library. Then an access to a page that is gone is SIGBUS or SIGSEGV. So the
 * kernel is asked whether a page can be read, before it is read.
 */
#ifndef INCSTACK_RECORDER_LOADED_H
#define INCSTACK_RECORDER_LOADED_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "elf/image.h"
#include "elf/layout.h"

/* Adjacent pages that the kernel has said are readable. One search may use the same. */
struct incstack__loaded_pages {
	uintptr_t low, high;
};

/* Whether the bytes can be read. `pages` are struct incstack__loaded_pages. */
bool incstack__loaded_has(void *pages, uintptr_t at, uint64_t bytes);

/* All memory, as far as it can be read. */
struct incstack__elf_image incstack__loaded_memory(struct incstack__loaded_pages *pages);

/* For a callback of dl_iterate_phdr. The layout is empty if the program headers cannot be read. */
struct incstack__elf_layout incstack__loaded_layout(const struct dl_phdr_info *info);

#endif
