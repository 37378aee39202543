// SPDX-License-Identifier: MIT
//
// A program whose functions are easy to sum wrongly: allocators of its own that have callees, recursion, inlined
// functions, templates, and threads.
#include <cstdlib>
#include <ctime>
#include <map>
#include <new>
#include <pthread.h>
#include <vector>

#define NOINLINE __attribute__((noinline))

static volatile unsigned long sink;

NOINLINE static void *xmalloc(size_t size)
{
	void *block = malloc(size);

	if (block == nullptr)
		abort();
	sink = sink + 1; // not a tail call
	return block;
}

// An allocator that has a callee, and a name that tools may leave out.
void *operator new(size_t size)
{
	return xmalloc(size);
}

void operator delete(void *block) noexcept
{
	free(block);
}

void operator delete(void *block, size_t) noexcept
{
	free(block);
}

static inline __attribute__((always_inline)) void *wrapped(size_t size)
{
	return xmalloc(size + 1);
}

NOINLINE static void *recurse(int depth)
{
	if (depth == 0)
		return wrapped(100);
	void *block = recurse(depth - 1);
	free(wrapped((size_t)depth * 10));
	return block;
}

template <typename T> struct box {
	std::vector<T> values;
	NOINLINE void fill(int count)
	{
		for (int i = 0; i < count; i++)
			values.push_back(T());
	}
};

NOINLINE static unsigned long burn(unsigned long turns)
{
	for (unsigned long i = 0; i < turns; i++)
		sink = sink + i * i;
	return sink;
}

// By processor time, so that a busy machine makes no difference.
static double used()
{
	timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void spend(double seconds)
{
	for (const double end = used() + seconds; used() < end;)
		burn(10000);
}

static void *work(void *)
{
	box<long> numbers;

	for (int i = 0; i < 50; i++)
		free(recurse(i % 7));
	numbers.fill(1000);
	spend(0.1);
	return xmalloc(77); // never freed
}

int main()
{
	pthread_t threads[3];
	box<char> letters;
	std::map<int, int> squares;

	for (pthread_t &thread : threads)
		pthread_create(&thread, nullptr, work, nullptr);
	letters.fill(5000);
	for (int i = 0; i < 100; i++)
		squares[i] = i * i;
	spend(0.1);
	for (pthread_t thread : threads)
		pthread_join(thread, nullptr);
	return 0;
}
