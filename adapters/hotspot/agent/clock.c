/* SPDX-License-Identifier: MIT
 *
 * The clock by which the agent samples and waits.
 */
#include "clock.h"

uint64_t agent_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * AGENT_NS_PER_S + (uint64_t)now.tv_nsec;
}

struct timespec agent_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / AGENT_NS_PER_S),
				 .tv_nsec = (long)(ns % AGENT_NS_PER_S)};
}

void agent_condition_init(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}
