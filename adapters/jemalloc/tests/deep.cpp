/* SPDX-License-Identifier: MIT
 *
 * Allocates at depths from 1 to 300, in the main thread, in other threads, on a signal stack, and in a fiber.
 */
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include <ucontext.h>

static void *volatile last;

static void *descend(int depth)
{
	void *found = depth ? descend(depth - 1) : std::malloc(3000);
	last = found;
	return found;
}

static void allocate()
{
	for (int i = 0; i < 2000; i++)
		std::free(descend(i % 300));
}

static void on_signal(int)
{
	std::free(descend(10));
}

static void on_signal_stack()
{
	std::vector<char> memory(1 << 17);
	stack_t stack = {};
	struct sigaction action = {};
	stack.ss_sp = memory.data();
	stack.ss_size = memory.size();
	sigaltstack(&stack, nullptr);
	action.sa_handler = on_signal;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, nullptr);
	for (int i = 0; i < 500; i++)
		raise(SIGUSR1);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, nullptr);
}

static ucontext_t outside, fiber;

static void in_fiber()
{
	for (int i = 0; i < 500; i++)
		std::free(descend(i % 100));
}

static void in_fibers()
{
	for (int i = 0; i < 4; i++) {
		std::vector<char> memory(1 << 18);
		getcontext(&fiber);
		fiber.uc_stack.ss_sp = memory.data();
		fiber.uc_stack.ss_size = memory.size();
		fiber.uc_link = &outside;
		makecontext(&fiber, in_fiber, 0);
		swapcontext(&outside, &fiber);
	}
}

int main()
{
	std::vector<std::thread> threads;
	allocate();
	on_signal_stack();
	in_fibers();
	for (int i = 0; i < 32; i++)
		threads.emplace_back(allocate);
	for (auto &thread : threads)
		thread.join();
	return 0;
}
