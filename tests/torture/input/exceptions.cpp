// SPDX-License-Identifier: MIT
//
// Exceptions on eight threads: thrown through frames with cleanups, rethrown, carried from
// thread to thread, and thrown in a destructor's caller.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct guard {
	std::vector<char> memory;
	explicit guard(unsigned n) : memory(n + 1)
	{
	}
	~guard()
	{
		free(malloc(memory.size()));
	}
};

__attribute__((noinline)) static unsigned deep(unsigned n, unsigned bottom)
{
	guard here(n);

	if (n == 0) {
		if (bottom % 3 == 0)
			throw std::runtime_error(std::string(50, 'x'));
		if (bottom % 3 == 1)
			throw std::vector<int>(bottom % 100 + 1);
		return 1;
	}
	return deep(n - 1, bottom) + here.memory[0] + 1;
}

__attribute__((noinline)) static unsigned rethrow(unsigned n, unsigned bottom)
{
	std::unique_ptr<guard> here(new guard(n));

	try {
		return deep(n, bottom);
	} catch (const std::runtime_error &) {
		throw;
	}
}

static unsigned work(unsigned rounds)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < rounds; i++) {
		std::exception_ptr kept;
		try {
			sum += rethrow(i % 40, i);
		} catch (const std::exception &e) {
			kept = std::current_exception();
			sum += unsigned(std::string(e.what()).size());
		} catch (const std::vector<int> &v) {
			sum += unsigned(v.size());
		}
		try {
			if (kept)
				std::rethrow_exception(kept);
		} catch (const std::exception &e) {
			sum += unsigned(std::string(e.what()).size()) / 2;
		}
	}
	return sum;
}

int main(int, char **argv)
{
	const unsigned scale = unsigned(atoi(argv[1]));
	std::vector<unsigned> sums(8);
	std::vector<std::thread> threads;

	for (unsigned t = 0; t < 8; t++)
		threads.emplace_back([&sums, t, scale] { sums[t] = work(scale * 60 + t); });
	for (auto &thread : threads)
		thread.join();
	for (unsigned sum : sums)
		printf("%u\n", sum);
}
