/* SPDX-License-Identifier: MIT
 *
 * An agent that wakes up at each time of a grid, by the same timers and in as many threads as the agent
 * that samples, and does nothing else. So it shows what the wake-ups alone cost a program: what no
 * sampler of this kind can save.
 *
 *   -agentpath:libticks.so=NS     the interval in nanoseconds
 */
#include <jvmti.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "safepoint/prompt.h"
#include "ticker.h"

#define NS_PER_S UINT64_C(1000000000)

static uint64_t interval_ns, start_ns;
static unsigned threads;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* Takes every turn of one thread; `number` counts the threads from 0. */
static void *run(void *number)
{
	const uint64_t step = threads * interval_ns;
	struct agent_ticker ticker;
	uint64_t turn = start_ns + (1 + (uintptr_t)number) * interval_ns;

	(void)incstack__be_prompt(false);
	agent_ticker_open(&ticker);
	agent_ticker_set(&ticker, turn, step);
	while (ticker.works) {
		agent_ticker_wait(&ticker, turn);
		for (uint64_t time = now(); turn <= time;)
			turn += step;
	}
	return NULL;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	pthread_t thread;

	(void)vm, (void)reserved;
	interval_ns = options ? strtoull(options, NULL, 10) : 0;
	if (!interval_ns)
		return JNI_ERR;
	start_ns = now();
	threads = agent_ticker_threads(interval_ns);
	for (uintptr_t i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, run,
				   (void *)i)) /* NOLINT(performance-no-int-to-ptr) */
			return JNI_ERR;
	return JNI_OK;
}
