/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 64 share<top
 */
#include <memory>

struct Item {
	long values[6];
};

static char room[sizeof(std::shared_ptr<Item>)];

__attribute__((noinline)) static int share()
{
	new (room) std::shared_ptr<Item>(std::make_shared<Item>()); // <share share>
	__asm__ volatile("" : : "r"(room) : "memory");
	return 1;
}

int main()
{
	return share() != 1; // <top main>
}
