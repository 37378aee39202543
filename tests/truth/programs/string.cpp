/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 1001 text<top
 */
#include <new>
#include <string>

static char room[sizeof(std::string)];

__attribute__((noinline)) static int keep(unsigned length)
{
	new (room) std::string(length, 'x'); // <text keep>
	__asm__ volatile("" : : "r"(room) : "memory");
	return 1;
}

int main(int count, char **)
{
	return keep(1000u * static_cast<unsigned>(count)) != 1; // <top main>
}
