/* SPDX-License-Identifier: MIT
 *
 * cpu_storm CPU-SECONDS PLUGIN: 64 threads that do what a profiler's signals must not disturb. Each
 * goes up and down its stack, throws, allocates, loads and unloads PLUGIN, forks, executes programs,
 * starts threads that end at once, and ends itself, after which another takes its place. Each checks
 * its results. The exit status is 0 if all are right.
 */
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace
{

enum { THREADS = 64, ACTIONS_PER_THREAD = 400, CHILD_STATUS = 7 };

/* The process's CPU time, because a busy machine gives little of it in a second. */
struct clock_type {
	using duration = std::chrono::nanoseconds;
	using time_point = std::chrono::time_point<clock_type, duration>;

	static time_point now()
	{
		timespec time = {};

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
		return time_point(std::chrono::seconds(time.tv_sec) +
				  std::chrono::nanoseconds(time.tv_nsec));
	}
};

using random_type = std::minstd_rand;

const char *plugin;
std::atomic<unsigned> wrong;
std::atomic<unsigned long> done;

void expect(bool right, const char *what)
{
	if (!right && wrong++ < 10)
		std::fprintf(stderr, "cpu_storm: wrong: %s\n", what);
}

[[gnu::noinline]] unsigned long sum_down(unsigned n)
{
	if (n == 0)
		return 0;
	volatile unsigned long below = sum_down(n - 1);
	return below + n;
}

[[gnu::noinline]] void throw_from(unsigned n)
{
	if (n == 0)
		throw std::runtime_error("from below");
	const std::string kept(n % 40, 'x'); /* to be destroyed by the unwinder */
	throw_from(n - 1);
	expect(kept.empty(), "returned past a throw");
}

void go_down(random_type &random)
{
	const unsigned n = 1 + random() % 300;

	for (int i = 0; i < 50; i++)
		expect(sum_down(n) == (unsigned long)n * (n + 1) / 2, "sum");
}

void catch_one(random_type &random)
{
	try {
		throw_from(random() % 60);
		expect(false, "nothing was thrown");
	} catch (const std::runtime_error &error) {
		expect(std::string(error.what()) == "from below", "exception");
	}
}

void allocate(random_type &random)
{
	std::vector<std::unique_ptr<unsigned[]>> blocks;

	for (unsigned i = 0; i < 200; i++) {
		blocks.push_back(std::make_unique<unsigned[]>(1 + random() % 500));
		blocks.back()[0] = i;
	}
	for (unsigned i = 0; i < 200; i++)
		expect(blocks[i][0] == i, "block");
}

void load_plugin(random_type &)
{
	void *const library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);

	expect(library != nullptr, "dlopen");
	if (library == nullptr)
		return;
	const auto make =
		reinterpret_cast<void *(*)(std::size_t)>(dlsym(library, "make_in_plugin"));
	for (std::size_t i = 0; i < 100; i++)
		std::free(make(i));
	expect(dlclose(library) == 0, "dlclose");
}

void expect_child(pid_t child)
{
	int status = 0;

	expect(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
		       WEXITSTATUS(status) == CHILD_STATUS,
	       "status of a child");
}

void fork_child(random_type &random)
{
	const unsigned n = random() % 100;
	const pid_t child = fork();

	if (child == 0)
		_exit(sum_down(n) == (unsigned long)n * (n + 1) / 2 ? CHILD_STATUS : 1);
	expect(child > 0, "fork");
	expect_child(child);
}

void execute(random_type &)
{
	const char *const arguments[] = {"sh", "-c", "exit 7", nullptr};
	pid_t child = 0;

	expect(posix_spawn(&child, "/bin/sh", nullptr, nullptr,
			   const_cast<char *const *>(arguments), environ) == 0,
	       "posix_spawn");
	expect_child(child);
}

void start_thread(random_type &random)
{
	const unsigned n = random() % 100;
	unsigned long sum = 0;

	std::thread([&] { sum = sum_down(n); }).join();
	expect(sum == (unsigned long)n * (n + 1) / 2, "sum of a thread");
}

void act(random_type &random)
{
	const unsigned which = random() % 100;

	if (which < 40)
		go_down(random);
	else if (which < 60)
		catch_one(random);
	else if (which < 80)
		allocate(random);
	else if (which < 90)
		start_thread(random);
	else if (which < 97)
		load_plugin(random);
	else if (which < 99)
		fork_child(random);
	else
		execute(random);
	done++;
}

void live(unsigned seed, clock_type::time_point end)
{
	random_type random(seed);

	for (int i = 0; i < ACTIONS_PER_THREAD && clock_type::now() < end; i++)
		act(random);
}

/* Each thread has successors until the time is over. */
void live_again(unsigned seed, clock_type::time_point end)
{
	while (clock_type::now() < end) {
		std::thread(live, seed, end).join();
		seed += THREADS;
	}
}

} // namespace

int main(int arguments, char **argv)
{
	if (arguments != 3) {
		std::fprintf(stderr, "usage: cpu_storm CPU-SECONDS PLUGIN\n");
		return 2;
	}
	const auto end = clock_type::now() + std::chrono::seconds(std::atoi(argv[1]));
	std::vector<std::thread> threads;

	plugin = argv[2];
	for (unsigned i = 0; i < THREADS; i++)
		threads.emplace_back(live_again, i + 1, end);
	for (auto &thread : threads)
		thread.join();
	std::printf("%lu actions, %u wrong\n", done.load(), wrong.load());
	return wrong != 0;
}
