// SPDX-License-Identifier: MIT
//
// An allocator library as jemalloc and others are: its operators new and delete do not
// call malloc. Blocks of up to 64 bytes are cut from its own memory; larger ones come from
// malloc. Beyond a limit it throws.
#include <cstdlib>
#include <new>

namespace
{

constexpr std::size_t cell = 64, cells = 4096;
alignas(64) char memory[cells][cell];
std::size_t used;
void *first_free;

bool is_ours(void *block)
{
	return static_cast<char *>(block) >= memory[0] &&
	       static_cast<char *>(block) < memory[cells - 1] + cell;
}

void *take(std::size_t bytes)
{
	if (bytes > 1u << 30)
		throw std::bad_alloc();
	if (bytes > cell)
		return std::malloc(bytes);
	if (first_free != nullptr) {
		void *block = first_free;

		first_free = *static_cast<void **>(block);
		return block;
	}
	if (used == cells)
		std::abort();
	return memory[used++];
}

void give(void *block)
{
	if (!is_ours(block))
		return std::free(block);
	*static_cast<void **>(block) = first_free;
	first_free = block;
}

} // namespace

void *operator new(std::size_t bytes)
{
	return take(bytes);
}

void *operator new[](std::size_t bytes)
{
	return take(bytes);
}

void operator delete(void *block) noexcept
{
	give(block);
}

void operator delete(void *block, std::size_t) noexcept
{
	give(block);
}

void operator delete[](void *block) noexcept
{
	give(block);
}

void operator delete[](void *block, std::size_t) noexcept
{
	give(block);
}

extern "C" void free_sized(void *block, std::size_t)
{
	give(block);
}

extern "C" int pool_used()
{
	return static_cast<int>(used);
}
