// SPDX-License-Identifier: MIT
//
// The process ends while threads throw and allocate without pause: most are inside the
// unwinder, which takes locks of its own and of the dynamic linker's, or inside the recorder
// when they are stopped.
//
// incstack heap varies
// incstack heap loses samples: those of threads that did not hold still in time
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

static std::atomic<long> thrown;

static __attribute__((noinline)) void descend(int depth)
{
	std::string text(40, 'x');

	if (depth == 0)
		throw std::runtime_error(text);
	descend(depth - 1);
}

static void run()
{
	for (;;) {
		try {
			descend(10);
		} catch (const std::runtime_error &) {
			thrown++;
		}
	}
}

int main()
{
	for (int i = 0; i < 4; i++)
		std::thread(run).detach();
	while (thrown < 200)
		usleep(1000);
	std::exit(0);
}
