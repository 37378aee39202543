/* SPDX-License-Identifier: MIT
 *
 * Allocates memory by operator new, when there is a file "go". It writes a line when it has begun.
 */
#include <cstdint>
#include <cstdio>
#include <new>
#include <unistd.h>

static char *kept[3];

static __attribute__((noinline)) void by_new()
{
	for (int i = 0; i < 200; i++)
		::operator delete(::operator new(40));
	for (char *&block : kept)
		block = new char[20];
}

/* Returns whether the exceptions of operator new arrive. */
static __attribute__((noinline)) bool by_throw()
{
	volatile std::size_t much = SIZE_MAX / 4;
	int caught = 0;

	for (int i = 0; i < 5; i++) {
		try {
			kept[0] = static_cast<char *>(::operator new(much));
		} catch (const std::bad_alloc &) {
			caught++;
		}
	}
	return caught == 5;
}

int main()
{
	std::puts("ready");
	std::fflush(stdout);
	while (access("go", F_OK) != 0)
		usleep(1000);
	by_new();
	return by_throw() ? 0 : 3;
}
