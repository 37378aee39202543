/* SPDX-License-Identifier: MIT
 *
 * The threads that sample: at each time of a grid of absolute times, one of them lets the technique
 * take samples. Times that have passed by then are missed, and their samples lost. If the interval is
 * short, several threads take turns; see ticker.h.
 */
#ifndef AGENT_SAMPLER_H
#define AGENT_SAMPLER_H

#include <jvmti.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "figures.h"
#include "grid.h"
#include "shared.h"
#include "technique.h"
#include "ticker.h"

struct agent_sampler;

/* One of the threads. The first of them leads: it also does what other threads ask for. */
struct agent_taker {
	struct agent_sampler *sampler;
	jthread thread; /* global */
	struct agent_ticker ticker;
	uint64_t turn; /* the next time of the grid that is this thread's */
};

/* What the leader is asked to do between two ticks. */
enum agent_asked { AGENT_ASKED_NOTHING = 0, AGENT_ASKED_DUMP, AGENT_ASKED_NEXT };

/* What the leader calls. */
struct agent_sampler_calls {
	/* Writes what there is so far. Then, if `next`, begins the next part. */
	void (*dump)(void *context, JNIEnv *jni, bool next);
	/* The duration of session `number` has passed. Another session may use the sampler already. */
	void (*over)(void *context, JNIEnv *jni, uint64_t number);
	void *context;
	uint64_t number;
};

struct agent_sampler {
	/* The same for all sessions, which follow one another. */
	pthread_mutex_t lock; /* of all members from `ticks` to `turns` */
	pthread_cond_t changed;

	struct agent_shared *shared;
	struct agent_technique *technique;
	struct agent_sampler_calls calls;
	struct agent_grid grid;
	struct agent_ticks ticks; /* of the part */
	enum agent_asked asked;
	bool stopping, ended; /* the leader has ended */
	unsigned followers;   /* threads that run, without the leader */
	unsigned turns;       /* how many threads take turns; 0 until all are started */
	struct agent_taker takers[AGENT_TICKER_THREADS_MOST];
};

/* Called once. */
void agent_sampler_init(struct agent_sampler *sampler);

/* Starts the threads. Returns null, or why it cannot. What is shared, and the technique, stay the caller's. */
const char *agent_sampler_start(struct agent_sampler *sampler, JNIEnv *jni,
				struct agent_shared *shared, struct agent_technique *technique,
				const struct agent_sampler_calls *calls);

/* Ends the threads. Returns false if they do not end until `limit` (CLOCK_MONOTONIC, ns). */
bool agent_sampler_stop(struct agent_sampler *sampler, uint64_t limit);

/* Called when the threads have ended, or could not be started. */
void agent_sampler_close(struct agent_sampler *sampler, JNIEnv *jni);

/* Returns when the leader has done it, or has ended. */
void agent_sampler_ask(struct agent_sampler *sampler, enum agent_asked asked);

/* Reads what was counted in this part. The next part begins with what was counted since. */
void agent_sampler_count(struct agent_sampler *sampler, struct agent_ticks *ticks);
void agent_sampler_next_part(struct agent_sampler *sampler, const struct agent_ticks *ticks);

#endif
