/* SPDX-License-Identifier: MIT
 *
 * Searches the index of a file's unwind information.
 */
#include "function_start.h"

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>

#include "elf/unwind_index.h"

/* The copy of the index that libelf has, and its address in the file's program headers. */
struct copied {
	const struct incstack__elf_unwind_index *index;
	uint64_t address;
};

static bool find_index(Elf *elf, struct copied *copied)
{
	struct incstack__elf_image image = {0};
	const Elf_Data *data;
	GElf_Phdr segment;
	size_t segments;
	size_t i = 0;

	if (elf_getphdrnum(elf, &segments) != 0)
		return false;
	while (i < segments &&
	       (gelf_getphdr(elf, (int)i, &segment) == NULL || segment.p_type != PT_GNU_EH_FRAME))
		i++;
	if (i == segments)
		return false;
	data = elf_getdata_rawchunk(elf, (int64_t)segment.p_offset, segment.p_filesz, ELF_T_BYTE);
	if (data == NULL)
		return false;
	image.low = (uintptr_t)data->d_buf;
	image.high = image.low + data->d_size;
	copied->index = incstack__elf_unwind_index_in(&image, image.low);
	copied->address = segment.p_vaddr;
	return copied->index != NULL;
}

uint64_t tool_function_start(Elf *elf, uint64_t address)
{
	struct copied copied;
	uint64_t start;
	uint32_t i;

	if (elf == NULL || !find_index(elf, &copied))
		return address;
	i = incstack__elf_unwind_index_find(copied.index, (int64_t)(address - copied.address));
	start = copied.address + (uint64_t)(int64_t)copied.index->table[i].low;
	return start <= address ? start : address;
}
