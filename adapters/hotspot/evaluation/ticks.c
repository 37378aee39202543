/* SPDX-License-Identifier: MIT
 *
 * An agent that wakes up at each time of a grid, by the same timers as the agent that samples, and does
 * nothing else. So it shows what the wake-ups alone cost a program: what no sampler of this kind can save.
 *
 *   -agentpath:libticks.so=NS     the interval in nanoseconds
 */
#include <jvmti.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <incstack/sampler.h>

#include "ticker.h"

#define NS_PER_S UINT64_C(1000000000)

static uint64_t interval_ns;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

static void *run(void *unused)
{
	struct agent_ticker ticker;
	uint64_t due = now() + interval_ns;

	(void)unused;
	incstack_sampler_be_prompt();
	agent_ticker_open(&ticker, interval_ns);
	agent_ticker_set(&ticker, due);
	while (ticker.works) {
		agent_ticker_wait(&ticker, due);
		for (uint64_t time = now(); due <= time;)
			due += interval_ns;
	}
	return NULL;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	pthread_t thread;

	(void)vm, (void)reserved;
	interval_ns = options ? strtoull(options, NULL, 10) : 0;
	return !interval_ns || pthread_create(&thread, NULL, run, NULL) ? JNI_ERR : JNI_OK;
}
