/* SPDX-License-Identifier: MIT
 *
 *     storm PLUGIN OTHER_PLUGIN ROUNDS
 *
 * Throws, loads and unloads libraries, allocates inside callbacks of dl_iterate_phdr, starts and ends threads,
 * and forks, all at once. Prints "ended" if nothing hangs and each child ends well.
 */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

static std::atomic<long> done;

static int throws(int depth)
{
	std::vector<char> memory(2000 + static_cast<size_t>(depth));
	if (depth == 0)
		throw std::runtime_error(std::string(3000, 'x'));
	return throws(depth - 1) + static_cast<int>(memory.size());
}

static void throw_once(int depth)
{
	try {
		done += throws(depth);
	} catch (const std::runtime_error &error) {
		done += std::string(error.what()).size() > 0;
	}
}

static void load_once(const char *plugin)
{
	void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		std::abort();
	auto call = reinterpret_cast<int (*)(int)>(dlsym(library, "plugin_throw"));
	try {
		done += call(20);
	} catch (const std::runtime_error &) {
		done++;
	}
	dlclose(library);
}

static int in_callback(dl_phdr_info *, size_t, void *)
{
	auto memory = std::make_unique<std::string>(5000, 'c');
	done += memory->size() > 0;
	throw_once(3);
	return 0;
}

static void thread_once()
{
	std::thread([] { done += std::string(4000, 'h').size() > 0; }).join();
}

static void fork_once()
{
	const pid_t child = fork();
	if (child == 0) {
		throw_once(10);
		_exit(0);
	}
	int status = 1;
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		std::abort();
}

int main(int count, char **arguments)
{
	if (count != 4)
		return 2;
	const char *plugin = arguments[1], *other = arguments[2];
	const int rounds = std::atoi(arguments[3]);
	std::vector<std::thread> threads;
	auto repeat = [&](auto work) {
		threads.emplace_back([=] {
			for (int i = 0; i < rounds; i++)
				work();
		});
	};
	repeat([] { throw_once(30); });
	repeat([=] {
		load_once(plugin);
		load_once(other);
	});
	repeat([] { dl_iterate_phdr(in_callback, nullptr); });
	repeat([] { thread_once(); });
	for (int i = 0; i < rounds / 10 + 1; i++)
		fork_once();
	for (auto &thread : threads)
		thread.join();
	std::puts("ended");
	return 0;
}
