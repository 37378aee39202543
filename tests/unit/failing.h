/* SPDX-License-Identifier: MIT
 *
 * Makes allocations fail. A scenario runs once for each allocation that it makes: with only that
 * allocation failing, and with all later ones failing, too. The program is linked with --wrap of
 * the functions below, so only allocations of code that is linked into it fail, not those of
 * loaded libraries.
 */
#ifndef FAILING_H
#define FAILING_H

#include <stdbool.h>
#include <stdlib.h>

#include <check.h>

#include <incstack/incstack.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

/* State of the thread that arms: the allocations of other threads succeed. */
static _Thread_local long until_failure = -1; /* allocations; below 0: none fails */
static _Thread_local bool failing_for_ever;
static _Thread_local bool has_failed;

static bool fails(void)
{
	const bool now = until_failure == 0 || (has_failed && failing_for_ever);

	if (until_failure >= 0)
		until_failure--;
	has_failed = has_failed || now;
	return now;
}

/* Counts a block that was made. A test that wraps free, too, knows how many there are. */
static _Thread_local long blocks;

static inline void *counted(void *block)
{
	blocks += block != NULL;
	return block;
}

void *__wrap_malloc(size_t bytes)
{
	return fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
	if (fails())
		return NULL;
	return old != NULL ? __real_realloc(old, bytes) : counted(__real_realloc(old, bytes));
}

/* The scenario arms and disarms with this, around the calls that it is about. */
static inline void arm(long count, bool for_ever)
{
	until_failure = count;
	failing_for_ever = for_ever;
	has_failed = false;
}

static inline bool disarm(void)
{
	until_failure = -1;
	failing_for_ever = false;
	return has_failed;
}

/* One run: calls arm(n, for_ever), what may fail, then disarm(), and looks at what it got
 * if that succeeded. Writes whether something failed; returns the result. */
typedef int scenario_fn(long n, bool for_ever, bool *something_failed);

static inline void fail_each_allocation(scenario_fn *scenario, long least)
{
	for (int for_ever = 0; for_ever < 2; for_ever++) {
		bool something_failed = true;
		long n = 0;

		for (; something_failed; n++) {
			const int result = scenario(n, for_ever, &something_failed);

			ck_assert_msg(result == 0 ||
					      (something_failed && result == INCSTACK_ENOMEM),
				      "allocation %ld: %d", n, result);
		}
		ck_assert_int_gt(n, least); /* otherwise nothing was tested */
	}
}

#endif
