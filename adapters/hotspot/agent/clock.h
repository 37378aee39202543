/* SPDX-License-Identifier: MIT
 *
 * The clock by which the agent samples and waits: CLOCK_MONOTONIC, in nanoseconds. Knows nothing of the JVM.
 */
#ifndef AGENT_CLOCK_H
#define AGENT_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define AGENT_NS_PER_S UINT64_C(1000000000)

uint64_t agent_now(void);

struct timespec agent_timespec(uint64_t ns);

/* Timed waits for the condition end by this clock. */
void agent_condition_init(pthread_cond_t *condition);

#endif
