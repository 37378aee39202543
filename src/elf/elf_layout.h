/* SPDX-License-Identifier: MIT
 *
 * What program headers say about a loaded object.
 */
#ifndef INCSTACK__ELF_LAYOUT_H
#define INCSTACK__ELF_LAYOUT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses in memory. A table that the object lacks is at 0. */
struct incstack__elf_layout {
	uintptr_t low, high;    /* of its loaded segments; high is 0 if there are none */
	uintptr_t dynamic;      /* its dynamic section */
	uintptr_t unwind_index; /* its .eh_frame_hdr */
};

static inline struct incstack__elf_layout
incstack__elf_layout(uintptr_t bias, const ElfW(Phdr) * segments, unsigned count)
{
	struct incstack__elf_layout layout = {.low = UINTPTR_MAX};
	for (const ElfW(Phdr) *s = segments; s < segments + count; s++) {
		const uintptr_t low = bias + s->p_vaddr;
		if (s->p_type == PT_DYNAMIC)
			layout.dynamic = low;
		if (s->p_type == PT_GNU_EH_FRAME)
			layout.unwind_index = low;
		if (s->p_type != PT_LOAD)
			continue;
		if (low < layout.low)
			layout.low = low;
		if (low + s->p_memsz > layout.high)
			layout.high = low + s->p_memsz;
	}
	return layout;
}

/* Returns the segment whose bytes in the file contain that range of addresses of the program headers, and
 * which can be read; or null. */
static inline const ElfW(Phdr) * incstack__elf_segment_of(const ElfW(Phdr) * segments,
							  unsigned count, uint64_t address,
							  uint64_t bytes)
{
	for (const ElfW(Phdr) *s = segments; s < segments + count; s++)
		if (s->p_type == PT_LOAD && s->p_flags & PF_R && address >= s->p_vaddr &&
		    address - s->p_vaddr <= s->p_filesz &&
		    bytes <= s->p_filesz - (address - s->p_vaddr))
			return s;
	return NULL;
}

struct incstack__elf_search {
	uintptr_t address;
	struct incstack__elf_layout layout;
};

/* A callback of dl_iterate_phdr. Its context is the search above. It stops at the object that contains the
 * address. */
static inline int incstack__elf_contains(struct dl_phdr_info *info, size_t size, void *context)
{
	struct incstack__elf_search *search = context;
	(void)size;
	search->layout = incstack__elf_layout(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);
	return search->address >= search->layout.low && search->address < search->layout.high;
}

#endif
