/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 3072 insert<top
 */
#include <map>
#include <new>

static char room[sizeof(std::map<long, double>)];
static std::map<long, double> *table;

__attribute__((noinline)) static int insert(long key)
{
	(*table)[key] = 1.0; // <insert insert>
	return 1;
}

int main()
{
	int sum = 0;

	table = new (room) std::map<long, double>;
	for (long i = 0; i < 64; i++)
		sum += insert(i); // <top main>
	return sum + static_cast<int>(table->size()) != 128;
}
