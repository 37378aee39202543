/* SPDX-License-Identifier: MIT
 *
 * A C++ program that is linked with -static-libgcc -static-libstdc++: its unwinder is a
 * part of it, and exports nothing. Exceptions are caught in near and far callers, in threads and
 * in signal handlers.
 * incstack heap mode: validate
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>

static int destroyed;

struct guard {
	~guard()
	{
		std::free(std::malloc(16));
		destroyed++;
	}
};

static int deep(int level);
static int (*volatile again)(int) = deep;

static int deep(int level)
{
	guard here;

	std::free(std::malloc(20));
	if (level == 0)
		throw 7;
	int result = again(level - 1) + 1;
	std::free(std::malloc(30));
	return result;
}

static int catches(int level)
{
	destroyed = 0;
	try {
		again(level);
	} catch (int value) {
		return destroyed == level + 1 ? value : -1;
	}
	return -1;
}

static int handled;

static void handler(int)
{
	handled = catches(3);
}

static void *thread(void *)
{
	int sum = 0;

	for (int level = 0; level < 30; level++)
		sum += catches(level);
	return reinterpret_cast<void *>(static_cast<long>(sum));
}

int main()
{
	pthread_t other;
	void *sum = nullptr;

	for (int i = 0; i < 50; i++)
		std::free(std::malloc(1)); /* barriers in front of main */
	for (int level = 0; level < 30; level++)
		if (catches(level) != 7)
			return 1;
	std::signal(SIGUSR1, handler);
	std::raise(SIGUSR1);
	if (handled != 7)
		return 2;
	if (pthread_create(&other, nullptr, thread, nullptr) != 0 ||
	    pthread_join(other, &sum) != 0 || reinterpret_cast<long>(sum) != 30 * 7)
		return 3;
	return 0;
}
