// SPDX-License-Identifier: MIT
//
// OpenMP: parallel loops, nested tasks, exceptions inside of a region.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

static unsigned tree(unsigned depth)
{
	std::vector<char> block(depth + 1);
	unsigned left = 0, right = 0;

	if (depth == 0)
		return 1;
#pragma omp task shared(left)
	left = tree(depth - 1);
	right = tree(depth - 1);
#pragma omp taskwait
	return left + right + block[0];
}

int main(int, char **argv)
{
	const int rounds = atoi(argv[1]);
	unsigned long sum = 0;

	for (int round = 0; round < rounds; round++) {
#pragma omp parallel for reduction(+ : sum)
		for (int i = 0; i < 400; i++) {
			try {
				if (i % 7 == 0)
					throw std::runtime_error(std::string(40, 'x'));
				sum += std::to_string(i).size();
			} catch (const std::exception &e) {
				sum += std::string(e.what()).size();
			}
		}
#pragma omp parallel
#pragma omp single
		sum += tree(8);
	}
	printf("%lu\n", sum);
}
