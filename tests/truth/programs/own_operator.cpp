/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 480 get<make<top
 */
#include <cstdlib>
#include <new>

struct Node {
	static void *operator new(std::size_t size)
	{
		void *block = std::malloc(size); // <get operator new>

		if (!block)
			throw std::bad_alloc();
		return block;
	}
	static void operator delete(void *block)
	{
		std::free(block);
	}
	long values[6];
};

Node *volatile kept;

__attribute__((noinline)) static int make()
{
	for (int i = 0; i < 10; i++)
		kept = new Node; // <make make>
	return 10;
}

int main()
{
	return make() != 10; // <top main>
}
