/* SPDX-License-Identifier: MIT
 *
 * Threads that end in every way, with destructors of thread-specific data that
 * allocate, some in the last round, after the recorder's own.
 */
#include <atomic>
#include <pthread.h>
#include <stdlib.h>
#include <string>
#include <unistd.h>
#include <vector>

enum { THREADS = 8, DEPTH = 20 };

static pthread_key_t late_key;
static std::atomic<int> rounds;
static std::atomic<int> objects;
static std::atomic<int> cleanups;

struct allocating {
	std::vector<std::string> lines;
	~allocating()
	{
		for (int i = 0; i < 10; i++)
			lines.push_back(std::string(100, 'x'));
		objects++;
	}
};

static thread_local allocating local;

/* Sets itself again until the last round. */
static void late_destructor(void *value)
{
	char *rest = static_cast<char *>(value);
	void *volatile block = malloc(64);

	free(block);
	rounds++;
	if (pthread_setspecific(late_key, *rest ? rest + 1 : nullptr) != 0)
		abort();
}

struct cleanup {
	void *block = malloc(48);
	~cleanup()
	{
		free(block);
		free(malloc(24));
		cleanups++;
	}
};

static void wait_for_cancel()
{
	for (;;)
		usleep(1000);
}

static void leave()
{
	pthread_exit(nullptr);
}

static void nothing()
{
	free(malloc(8));
}

static void nest(int level, void (*action)());
static void (*volatile again)(int, void (*)()) = nest;

static void nest(int level, void (*action)())
{
	cleanup here;

	if (level == 0)
		action();
	else
		again(level - 1, action);
}

static void *run(void *argument)
{
	static char lives[] = "xxx";

	local.lines.push_back("first");
	pthread_setspecific(late_key, lives);
	nest(DEPTH / 2, nothing);
	nest(DEPTH, reinterpret_cast<void (*)()>(argument));
	return nullptr;
}

static void run_threads(void (*action)(), bool cancel)
{
	pthread_t threads[THREADS];

	for (pthread_t &thread : threads)
		if (pthread_create(&thread, nullptr, run, reinterpret_cast<void *>(action)) != 0)
			exit(1);
	for (pthread_t &thread : threads)
		if ((cancel && pthread_cancel(thread) != 0) || pthread_join(thread, nullptr) != 0)
			exit(2);
}

int main()
{
	if (pthread_key_create(&late_key, late_destructor) != 0)
		return 3;
	run_threads(nothing, false);
	run_threads(leave, false);
	run_threads(wait_for_cancel, true);
	if (objects != 3 * THREADS || rounds != 4 * 3 * THREADS)
		return 4;
	/* A cancelled thread may not have come to its deepest frame. */
	return cleanups >= 2 * THREADS * (DEPTH + 1) ? 0 : 5;
}
