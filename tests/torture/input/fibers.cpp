// SPDX-License-Identifier: MIT
//
// Boost.Fiber: fibers with channels, exceptions inside of fibers, fibers that are given up.
#include <boost/fiber/all.hpp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

__attribute__((noinline)) static unsigned deep(unsigned n)
{
	std::vector<char> block(n + 1);

	if (n == 0) {
		boost::this_fiber::yield();
		throw std::runtime_error("bottom");
	}
	return deep(n - 1) + block[0] + 1;
}

int main(int, char **argv)
{
	const unsigned rounds = unsigned(atoi(argv[1])) * 5;
	unsigned sum = 0;

	for (unsigned round = 0; round < rounds; round++) {
		boost::fibers::buffered_channel<std::string> channel(16);
		std::vector<boost::fibers::fiber> fibers;

		for (unsigned i = 0; i < 8; i++)
			fibers.emplace_back([&channel, i] {
				try {
					deep(i * 4);
				} catch (const std::exception &e) {
					channel.push(std::string(e.what()) + std::string(30, 'x'));
				}
			});
		for (unsigned i = 0; i < 8; i++) {
			std::string text;

			channel.pop(text);
			sum += unsigned(text.size());
		}
		for (auto &fiber : fibers)
			fiber.join();
	}
	printf("%u\n", sum);
}
