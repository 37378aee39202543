/* SPDX-License-Identifier: MIT
 *
 * A C++ program whose allocations are made by functions that are inlined into others. The comments mark the
 * lines that the test wants to see.
 */
#include <cstdlib>

static void *volatile sink;

#define INLINED __attribute__((always_inline)) inline

namespace store
{

struct Table {
	unsigned taken = 0;

	INLINED void *take(std::size_t bytes)
	{
		taken++;
		return std::malloc(bytes); /* take */
	}
};

template <class T> INLINED void *fill(T &table, std::size_t bytes)
{
	void *filled = table.take(bytes); /* fill */

	return filled;
}

} // namespace store

__attribute__((noinline)) static void work(store::Table &table)
{
	sink = store::fill(table, 1000); /* work */
	std::free(sink);
}

int main()
{
	store::Table table;

	for (int i = 0; i < 100; i++)
		work(table); /* main */
	return table.taken == 100 ? 0 : 1;
}
