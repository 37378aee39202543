/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 8192 add<top
 */
#include <vector>

static std::vector<long> *numbers;
static char room[sizeof(std::vector<long>)];

__attribute__((noinline)) static int add(long most)
{
	for (long i = 0; i < most; i++)
		numbers->push_back(i); // <add add>
	return static_cast<int>(most);
}

int main()
{
	numbers = new (room) std::vector<long>;
	return add(1000) != 1000; // <top main>
}
