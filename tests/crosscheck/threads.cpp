// SPDX-License-Identifier: MIT
//
// A C++ program of several threads: containers, recursion of changing depth, exceptions
// through frames with destructors, threads that come and go.
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace
{

struct Node {
	std::string name;
	std::vector<std::unique_ptr<Node>> children;
};

std::unique_ptr<Node> grow(unsigned depth, unsigned seed)
{
	auto node = std::make_unique<Node>();
	node->name = std::string(20 + seed % 30, 'n');
	for (unsigned i = 0; depth > 0 && i < 1 + seed % 3; i++)
		node->children.push_back(grow(depth - 1, seed * 7 + i));
	return node;
}

void fail_at(unsigned depth, unsigned seed)
{
	std::vector<int> guard(depth + 1);
	if (depth == 0)
		throw std::runtime_error("as long as it takes to leave the small string");
	fail_at(depth - 1, seed);
	guard.push_back(static_cast<int>(seed));
}

unsigned caught(unsigned depth, unsigned seed)
{
	try {
		fail_at(depth, seed);
	} catch (const std::exception &error) {
		return static_cast<unsigned>(std::string(error.what()).size());
	}
	return 0;
}

void work(unsigned seed, unsigned rounds)
{
	std::map<unsigned, std::string> words;
	for (unsigned i = 0; i < rounds; i++) {
		grow(6, seed + i);
		words[i % 100] = std::to_string(caught(i % 40, seed)) + std::string(30, 'w');
		std::function<unsigned()> later = [i, words] { return words.begin()->first + i; };
		if (i % 8 == 0)
			later();
	}
}

} // namespace

int main(int argc, char **argv)
{
	const unsigned scale = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1;
	const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 0;
	for (unsigned round = 0; round < 3; round++) {
		std::vector<std::thread> threads;
		for (unsigned i = 0; i < 6; i++)
			threads.emplace_back(work, seed + 10 * round + i, 25 * scale);
		for (auto &thread : threads)
			thread.join();
	}
	return 0;
}
