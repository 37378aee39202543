/* SPDX-License-Identifier: MIT
 *
 * What is left of a timeout.
 */
#include "waits.h"

int64_t incstack__waiting_left(int64_t timeout_ns, uint64_t begin)
{
	struct timespec now;
	int64_t passed;

	clock_gettime(CLOCK_MONOTONIC, &now);
	passed = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)begin;
	return passed < timeout_ns ? timeout_ns - passed : 0;
}

void incstack__waiting_shorten(struct timespec *left, const struct timespec *all, uint64_t *first,
			       uint64_t begin)
{
	int64_t rest;

	*first = *first != 0 ? *first : begin;
	if (!all)
		return;
	rest = incstack__waiting_left((int64_t)all->tv_sec * 1000000000 + all->tv_nsec, *first);
	*left = (struct timespec){rest / 1000000000, rest % 1000000000};
}
