/* SPDX-License-Identifier: MIT
 *
 * flags: -O1
 * leak 160 body<apply<top
 */
#include <functional>

static int *volatile kept;

__attribute__((noinline)) static int apply(const std::function<void(int)> &action)
{
	for (int i = 0; i < 10; i++)
		action(4); // <apply apply>
	return 10;
}

int main()
{
	const auto body = [](int count) {
		kept = new int[static_cast<unsigned>(count)]; // <body operator()>
	};

	return apply(body) != 10; // <top main>
}
