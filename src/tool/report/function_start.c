/* SPDX-License-Identifier: MIT
 *
 * Searches .eh_frame_hdr, a sorted table of functions and their unwind entries. Both are 32-bit
 * offsets from the header, the only form that linkers write on x86-64.
 */
#include "function_start.h"

#include <gelf.h>
#include <string.h>

enum {
	HEADER_BYTES = 12, /* version and three encodings, pointer, count */
	ENTRY_BYTES = 8,
	COUNT_UDATA4 = 0x03,
	TABLE_DATAREL_SDATA4 = 0x3b,
};

struct table {
	const unsigned char *entries;
	uint64_t base; /* the address of the header */
	uint32_t count;
};

static int find_table(Elf *elf, struct table *table)
{
	const Elf_Data *data;
	const unsigned char *header;
	GElf_Phdr segment;
	size_t segments;
	size_t i = 0;

	if (elf_getphdrnum(elf, &segments) != 0)
		return -1;
	while (i < segments &&
	       (gelf_getphdr(elf, (int)i, &segment) == NULL || segment.p_type != PT_GNU_EH_FRAME))
		i++;
	if (i == segments)
		return -1;
	data = elf_getdata_rawchunk(elf, (int64_t)segment.p_offset, segment.p_filesz, ELF_T_BYTE);
	if (data == NULL || data->d_size < HEADER_BYTES)
		return -1;
	header = data->d_buf;
	if (header[0] != 1 || header[2] != COUNT_UDATA4 || header[3] != TABLE_DATAREL_SDATA4)
		return -1;
	memcpy(&table->count, header + 8, sizeof(table->count));
	if (table->count > (data->d_size - HEADER_BYTES) / ENTRY_BYTES)
		return -1;
	table->entries = header + HEADER_BYTES;
	table->base = segment.p_vaddr;
	return 0;
}

static uint64_t start_of(const struct table *table, uint32_t entry)
{
	int32_t offset;

	memcpy(&offset, table->entries + (size_t)entry * ENTRY_BYTES, sizeof(offset));
	return table->base + (uint64_t)(int64_t)offset;
}

uint64_t tool_function_start(Elf *elf, uint64_t address)
{
	struct table table;
	uint32_t low = 0;
	uint32_t high;

	if (elf == NULL || find_table(elf, &table) != 0 || table.count == 0 ||
	    start_of(&table, 0) > address)
		return address;
	for (high = table.count; high - low > 1;) {
		const uint32_t middle = low + (high - low) / 2;

		if (start_of(&table, middle) <= address)
			low = middle;
		else
			high = middle;
	}
	return start_of(&table, low);
}
