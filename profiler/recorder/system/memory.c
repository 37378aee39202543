/* SPDX-License-Identifier: MIT
 *
 * Memory for the recorder, which must not come from the program's allocator.
 */
#include <string.h>
#include <sys/mman.h>

#include "kernel.h"
#include "recorder/system/system.h"

void *incstack__record_map(size_t bytes)
{
	void *memory = incstack__kernel_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void *incstack__record_remap(void *memory, size_t bytes, size_t more)
{
	void *moved = incstack__kernel_mremap(memory, bytes, more, MREMAP_MAYMOVE, NULL);

	return moved == MAP_FAILED ? NULL : moved;
}

void incstack__record_unmap(void *memory, size_t bytes)
{
	if (memory)
		incstack__kernel_munmap(memory, bytes);
}

void incstack__record_make_private(void *memory, size_t bytes)
{
	void *copy = incstack__record_map(bytes);

	if (!copy)
		return;
	memcpy(copy, memory, bytes);
	incstack__kernel_mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, memory);
}
