/* SPDX-License-Identifier: MIT
 *
 * A library that is linked with an unwinder of its own, as some extension modules of
 * interpreters are: it throws, catches in callers near and far, throws again, and throws
 * inside a destructor. It calls a function of the caller in every frame and, while an exception
 * passes, in every destructor.
 */
#include <stdexcept>

typedef void action(void);

static action *act;
static int destroyed;

struct guard {
	~guard()
	{
		act();
		destroyed++;
	}
};

struct throwing_guard {
	~throwing_guard()
	{
		try {
			guard here;
			throw 1;
		} catch (int) {
			act();
		}
	}
};

static int deep(int level);
static int (*volatile again)(int) = deep;

static int deep(int level)
{
	guard here;

	act();
	if (level == 0)
		throw std::runtime_error("thrown");
	return again(level - 1) + 1;
}

static int throw_again(int level)
{
	throwing_guard here;

	try {
		return again(level);
	} catch (const std::runtime_error &) {
		act();
		throw;
	}
}

/* How many destructors ran, or -1. */
extern "C" int throw_with_own_unwinder(int levels, int rethrown, action *wanted)
{
	act = wanted;
	destroyed = 0;
	try {
		act();
		rethrown ? throw_again(levels) : again(levels);
	} catch (const std::runtime_error &) {
		act();
		return destroyed;
	}
	return -1;
}
