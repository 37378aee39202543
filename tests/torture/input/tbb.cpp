// SPDX-License-Identifier: MIT
//
// TBB: parallel loops, sorting, a concurrent map, exceptions that leave a task.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <tbb/concurrent_hash_map.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/parallel_sort.h>

int main(int, char **argv)
{
	const int rounds = atoi(argv[1]) * 4;
	size_t sum = 0;

	for (int round = 0; round < rounds; round++) {
		tbb::concurrent_hash_map<int, std::string> map;
		std::vector<std::string> words(500);

		tbb::parallel_for(0, 500, [&](int i) {
			words[size_t(i)] = std::to_string(i * 7919 % 1000) + std::string(20, 'x');
			map.insert({i % 100, words[size_t(i)]});
		});
		tbb::parallel_sort(words.begin(), words.end());
		sum += map.size() + words[100].size();
		try {
			tbb::parallel_for(0, 100, [](int i) {
				if (i == 50)
					throw std::runtime_error("x");
			});
		} catch (const std::exception &e) {
			sum += std::string(e.what()).size();
		}
	}
	printf("%zu\n", sum);
}
