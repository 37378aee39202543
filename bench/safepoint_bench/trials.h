/* SPDX-License-Identifier: MIT
 *
 * Requests for two samples of mutators that run or wait, in four variants, and the times that they take.
 */
#ifndef SAFEPOINT_BENCH_TRIALS_H
#define SAFEPOINT_BENCH_TRIALS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <incstack/safepoint.h>

#define SAMPLES 2 /* of a request */
#define STALLS_MAX (1 << 18)

enum variant { FULL, PARTIAL, PARKING, BARE, VARIANTS };
enum measure { FIRST, LAST, STOPPED, MEASURES };

/* The measurements of one configuration. */
struct seen {
	uint32_t count; /* trials of each variant */
	uint32_t *times[VARIANTS][MEASURES], *requester;
	uint32_t *stalls[VARIANTS];
	_Atomic(uint32_t) stall_count[VARIANTS];
};
extern struct seen seen;

extern uint32_t trials; /* wanted for each variant */

static inline uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What a mutator does between two polls. */
static inline uint64_t body(uint64_t x)
{
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x * 0x2545f4914f6cdd1du;
}

/* Runs the trials of a configuration into `seen`. Returns false if the requester was refused a real-time
 * priority. */
bool run_trials(uint32_t threads, uint32_t runnable);

#endif
