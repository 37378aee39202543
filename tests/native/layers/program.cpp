/* SPDX-License-Identifier: MIT
 *
 * The instrumented program of test_layers: recursion, function pointers, callbacks of qsort, C++
 * exceptions, setjmp and longjmp. It is compiled with -finstrument-functions.
 */
#include <csetjmp>
#include <cstdlib>

#include "layers.h"

#define LAYERED __attribute__((noinline, section("layered")))

static jmp_buf *escape;
static int escape_depth, catch_depth, catchers;

static LAYERED long leaf(int depth)
{
	return depth + 1;
}

static LAYERED long burns(int depth)
{
	long result = 0;
	for (std::uint32_t n = layers_chance(60); n; n--)
		result += leaf(depth);
	return result;
}

static LAYERED long recurses(int depth)
{
	return depth > 0 ? layered_work(depth - 1) + 1 : 1;
}

static LAYERED long polls(int depth)
{
	layers_poll();
	return depth;
}

static LAYERED long calls_pointer(int depth)
{
	static long (*const functions[])(int) = {recurses, burns, polls, layered_work};
	return functions[layers_chance(4)](depth - 1) + 1;
}

static int sorting;

static LAYERED int compares(const void *a, const void *b)
{
	if (sorting > 0 && layers_chance(4) == 0)
		layered_work(--sorting);
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static LAYERED long sorts(int depth)
{
	int numbers[] = {4, 1, 5, 9, 2, 6};
	const int outer = sorting;
	sorting = depth - 1;
	qsort(numbers, 6, sizeof(numbers[0]), compares);
	sorting = outer;
	return numbers[0];
}

static LAYERED long throws(int depth)
{
	if (catchers > 0 && layers_chance(3) == 0) {
		layers_leave(catch_depth);
		throw depth;
	}
	return depth > 0 ? layered_work(depth - 1) + 1 : 1;
}

static LAYERED long catches(int depth)
{
	const int left = layers_depth(), outer = sorting, outer_depth = catch_depth;
	jmp_buf *const outer_escape = escape;
	long result = 0;
	escape = nullptr; /* a jump over a catcher would leave `catchers` wrong */
	catchers++;
	catch_depth = left;
	try {
		result = throws(depth - 1);
	} catch (int thrown) {
		layers_arrive(left);
		result = thrown;
	}
	catchers--;
	catch_depth = outer_depth;
	escape = outer_escape;
	sorting = outer;
	return result;
}

static LAYERED long leaps(int depth)
{
	if (escape && layers_chance(3) == 0) {
		layers_leave(escape_depth);
		longjmp(*escape, 1);
	}
	return depth > 0 ? layered_work(depth - 1) + 1 : 1;
}

static LAYERED long lands(int depth)
{
	jmp_buf here, *const outer = escape;
	const int left = layers_depth(), outer_depth = escape_depth, outer_sorting = sorting;
	const int outer_catchers = catchers;
	volatile long result = 0;
	catchers = 0; /* an exception over this frame would leave `escape` wrong */
	escape = &here;
	escape_depth = left;
	if (setjmp(here) == 0)
		result = leaps(depth - 1);
	else
		layers_arrive(left);
	catchers = outer_catchers;
	escape = outer;
	escape_depth = outer_depth;
	sorting = outer_sorting;
	return result;
}

LAYERED long layered_work(int depth)
{
	static long (*const ways[])(int) = {recurses, calls_pointer, sorts, catches,
					    lands,    polls,         burns};
	long result = 0;
	for (std::uint32_t n = 1 + layers_chance(3); n && depth > 0; n--)
		result += ways[layers_chance(7)](depth - 1);
	return result;
}

#define ADDRESS(function) reinterpret_cast<std::uintptr_t>(function)
const std::uintptr_t layered_functions[] = {
	ADDRESS(leaf),          ADDRESS(burns),    ADDRESS(recurses), ADDRESS(polls),
	ADDRESS(calls_pointer), ADDRESS(compares), ADDRESS(sorts),    ADDRESS(throws),
	ADDRESS(catches),       ADDRESS(leaps),    ADDRESS(lands),    ADDRESS(layered_work),
};
const int layered_count = sizeof(layered_functions) / sizeof(layered_functions[0]);
