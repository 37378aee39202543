/* SPDX-License-Identifier: MIT
 *
 * Throws and catches, in a library that brings the unwinder into a C program; a
 * destructor allocates while the exception passes.
 */
#include <stdlib.h>
#include <stdexcept>

static int destroyed;

struct guard {
	void *block = malloc(32);
	~guard()
	{
		free(block);
		free(malloc(8));
		destroyed++;
	}
};

static void deep(int level);
static void (*volatile again)(int) = deep;

static void deep(int level)
{
	guard here;

	if (level == 0)
		throw std::runtime_error("thrown");
	again(level - 1);
}

/* How many destructors ran, or -1. */
extern "C" int throw_through(int levels)
{
	destroyed = 0;
	try {
		deep(levels);
	} catch (const std::runtime_error &) {
		return destroyed;
	}
	return -1;
}
