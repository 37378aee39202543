// SPDX-License-Identifier: MIT
//
// incstack heap preload: stacks_new.so
// incstack heap traces: 2000
//
// Operators new of an allocator library that calls malloc for some blocks only: each
// block is recorded once, and what the operators throw passes through the recorder.
#include <cstdlib>
#include <dlfcn.h>
#include <new>

extern "C" void free_sized(void *block, std::size_t bytes) __attribute__((weak));

namespace
{

void *volatile kept;

__attribute__((noinline)) void allocate()
{
	char *small = new char[48]; // from the library's own memory
	char *large = new char[100];

	kept = small;
	kept = large;
	delete[] small;
	delete[] large;
}

__attribute__((noinline)) void nest(int level)
{
	if (level == 0)
		allocate();
	else
		nest(level - 1);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) int fail_to_allocate(int level)
{
	if (level > 0)
		return fail_to_allocate(level - 1) + 1;
	kept = operator new(std::size_t(1) << 40);
	return 0;
}

} // namespace

// Argument: how often it allocates.
int main(int argc, char **argv)
{
	const int count = argc > 1 && std::atoi(argv[1]) > 0 ? std::atoi(argv[1]) : 1000;
	int (*pool_used)();
	int caught = 0;

	for (int i = 0; i < count; i++)
		nest(i % 20);
	for (int i = 0; i < 100; i++)
		free_sized(operator new(48), 48);
	for (int i = 0; i < 100; i++) {
		try {
			fail_to_allocate(i % 20);
		} catch (const std::bad_alloc &) {
			caught++;
		}
	}
	kept = operator new(std::size_t(1) << 40, std::nothrow);
	*reinterpret_cast<void **>(&pool_used) = dlsym(RTLD_DEFAULT, "pool_used");
	if (kept != nullptr || caught != 100 || pool_used == nullptr)
		return 1;
	return pool_used() > 0 && pool_used() < 100 ? 0 : 2;
}
