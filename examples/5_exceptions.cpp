// SPDX-License-Identifier: MIT
//
// Exceptions and fibers: both leave frames without a return. An exception passes the barriers by
// itself. A fiber has a state for its own stack, whose owner is set after each switch.
//
// Build: c++ 5_exceptions.cpp $(pkg-config --static --cflags --libs incstack-native)
#include <cinttypes>
#include <cstdio>
#include <stdexcept>
#include <ucontext.h>
#include <vector>

#include <incstack/native.h>

namespace
{

incstack_runtime *runtime;
ucontext_t program, fiber;
incstack_stack *program_stack, *fiber_stack;

[[gnu::noinline]] int sample(incstack_stack *stack)
{
	const incstack_top top = incstack_native_top(nullptr);
	return incstack_stack_sample(stack, 0, 1, &top);
}

// Samples, and throws through the sampled frames: through `depth` of them to the handler.
[[gnu::noinline]] int dive(incstack_stack *stack, int depth)
{
	if (sample(stack) != 0)
		return -1;
	if (depth == 0)
		throw std::runtime_error("bottom");
	return dive(stack, depth - 1) + 1;
}

[[gnu::noinline]] int dive_and_return(incstack_stack *stack)
{
	int caught = 0;
	for (int i = 0; i < 10; i++)
		try {
			dive(stack, 20 + i);
		} catch (const std::runtime_error &) {
			caught++;
		}
	return caught;
}

// The thread runs on the stack of the fiber between two switches.
void fiber_main()
{
	for (;;) {
		dive_and_return(fiber_stack);
		swapcontext(&fiber, &program);
	}
}

void resume()
{
	incstack_stack_set_owner(fiber_stack); // another thread may have run it before
	swapcontext(&program, &fiber);
}

int print(const char *name, incstack_stack *stack)
{
	incstack_stats stats = {};
	incstack_tree *tree = nullptr;
	stats.size = sizeof(stats);
	if (incstack_stack_retrieve(stack, &tree) != 0 || incstack_stack_stats(stack, &stats) != 0)
		return 1;
	std::printf("%s: %" PRIu64 " traces, %" PRIu64 " truncated\n", name, tree->count,
		    tree->truncated);
	incstack_tree_release(tree);
	return 0;
}

} // namespace

int main()
{
	std::vector<uintptr_t> memory(1 << 15);
	const uintptr_t low = reinterpret_cast<uintptr_t>(memory.data());
	const uintptr_t high = low + memory.size() * sizeof(uintptr_t);

	if (incstack_runtime_create_native(nullptr, &runtime) != 0 ||
	    incstack_stack_create_native(runtime, &program_stack) != 0 ||
	    incstack_stack_create(runtime, low, high, &fiber_stack) != 0 ||
	    incstack_stack_reserve(program_stack, 1 << 20) != 0 ||
	    incstack_stack_reserve(fiber_stack, 1 << 20) != 0)
		return 1;
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = memory.data();
	fiber.uc_stack.ss_size = high - low;
	makecontext(&fiber, fiber_main, 0);
	resume();
	dive_and_return(program_stack);
	resume();
	int error = print("program", program_stack) | print("fiber", fiber_stack);
	// The fiber is never resumed: its frames are gone, so no slot may be restored.
	incstack_stack_abandon(fiber_stack);
	incstack_stack_destroy(program_stack);
	incstack_runtime_destroy(runtime);
	return error;
}
