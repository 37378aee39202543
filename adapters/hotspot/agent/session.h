/* SPDX-License-Identifier: MIT
 *
 * A session: sampling from its start to its result. A technique takes the samples.
 */
#ifndef AGENT_SESSION_H
#define AGENT_SESSION_H

#include <jvmti.h>
#include <pthread.h>
#include <stdbool.h>

#include "grid.h"
#include "output.h"
#include "shared.h"
#include "technique.h"
#include "ticker.h"

struct agent_session;

/* One of the sampler's threads; they take turns. The first of them leads: it also does what other
 * threads ask for. */
struct agent_sampler {
	struct agent_session *session;
	jthread thread; /* global */
	struct agent_ticker ticker;
	uint64_t turn; /* the next time of the grid that is this thread's */
};

/* What the leader is asked to do between two ticks. */
enum agent_asked { AGENT_ASKED_NOTHING = 0, AGENT_ASKED_DUMP, AGENT_ASKED_NEXT };

struct agent_session {
	/* The same for all sessions, which follow one another. */
	JavaVM *vm;
	uint64_t number;
	pthread_mutex_t lock; /* of `stopping` to `turns`, and of `ticks` */
	pthread_cond_t changed;
	/* Held while traces are brought to the collector, and while a profile is written: for seconds.
	 * No thread of the program takes it. */
	pthread_mutex_t retrieving;

	struct agent_shared shared;
	struct agent_technique *technique; /* the first member that a session begins with */
	struct agent_output output;

	/* The sampler's threads. */
	bool stopping, ended;
	enum agent_asked asked;
	unsigned followers; /* sampler's threads that run, without the leader */
	unsigned turns;     /* how many threads take turns; 0 until all are started */
	struct agent_sampler samplers[AGENT_TICKER_THREADS_MOST];
	struct agent_grid grid;

	struct agent_ticks ticks;

	uint64_t processor_ns; /* of the threads, when the part began */
	uint64_t part_ns;      /* CLOCK_MONOTONIC, when the part began */
};

/* Called once, before the first session. */
void agent_session_init(struct agent_session *session, JavaVM *vm, jvmtiEnv *jvmti);

/* Starts sampling. Returns null, or why it cannot start. */
const char *agent_session_start(struct agent_session *session, JNIEnv *jni,
				const struct agent_options *options);

/* Ends sampling, writes the result and frees everything. Returns false if the sampler's thread
 * does not end: then the session can never be used again. */
bool agent_session_finish(struct agent_session *session, JNIEnv *jni);

/* Called on the leader. Writes what there is so far. Then, if `next`, begins the next
 * part. */
void agent_session_dump(struct agent_session *session, JNIEnv *jni, bool next);

/* The sampler's threads. Stop returns false if they do not end until `limit` (CLOCK_MONOTONIC, ns); ask returns when the leader
 * has done it, or has ended. */
const char *agent_sampler_start(struct agent_session *session, JNIEnv *jni);
bool agent_sampler_stop(struct agent_session *session, uint64_t limit);
void agent_sampler_ask(struct agent_session *session, enum agent_asked asked);

/* In agent.c. The leader calls the first when the duration of session `number` has
 * passed; it does not use the session any more. The second switches the events of threads and
 * classes on and off; off, it returns when none of them is in progress. */
void agent_duration_over(uint64_t number, JNIEnv *jni);
void agent_listen(bool on);

#endif
