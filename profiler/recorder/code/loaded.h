/* SPDX-License-Identifier: MIT
 *
 * The objects that the dynamic linker has loaded. A program may cut off the file of a library that it has
 * loaded, or unmap a part of the library. Then an access to a page that is gone is SIGBUS or SIGSEGV. So the
 * kernel is asked whether a page can be read, before it is read. That does not help if another thread or process
 * cuts off the file between the question and the read.
 */
#ifndef INCSTACK_RECORDER_LOADED_H
#define INCSTACK_RECORDER_LOADED_H

#include <link.h>

#include "elf/elf_image.h"
#include "elf/elf_layout.h"
#include "native/native.h"

/* All memory, as far as it can be read. A search keeps in `pages` what the kernel has said. */
static inline struct incstack__elf_image
incstack__loaded_memory(struct incstack__native_pages *pages)
{
	return (struct incstack__elf_image){0, UINTPTR_MAX, incstack__native_readable, pages};
}

/* For a callback of dl_iterate_phdr. The layout is empty if the program headers cannot be read. */
static inline struct incstack__elf_layout incstack__loaded_layout(const struct dl_phdr_info *info)
{
	const size_t bytes = info->dlpi_phnum * sizeof(info->dlpi_phdr[0]);
	const bool has = incstack__native_readable_once((uintptr_t)info->dlpi_phdr, bytes);

	return incstack__elf_layout(info->dlpi_addr, info->dlpi_phdr, has ? info->dlpi_phnum : 0);
}

#endif
