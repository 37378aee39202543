/* SPDX-License-Identifier: MIT
 *
 * A session: sampling from its start to its result. A technique takes the samples.
 */
#ifndef AGENT_SESSION_H
#define AGENT_SESSION_H

#include <jvmti.h>
#include <pthread.h>
#include <stdbool.h>

#include "output.h"
#include "sampler.h"
#include "shared.h"
#include "technique.h"

struct agent_session;

struct agent_session {
	/* The same for all sessions, which follow one another. */
	uint64_t number;
	void (*over)(uint64_t number, JNIEnv *jni); /* see agent_session_init */
	struct agent_sampler sampler;
	/* Held while traces are brought to the collector, and while a profile is written: for seconds.
	 * No thread of the program takes it. */
	pthread_mutex_t retrieving;

	struct agent_shared shared;
	struct agent_technique *technique; /* the first member that a session begins with */
	struct agent_output output;

	uint64_t processor_ns; /* of the threads, when the part began */
	uint64_t part_ns;      /* CLOCK_MONOTONIC, when the part began */
};

/* Called once, before the first session. A thread of the sampler calls `over` when the duration of session `number`
 * has passed. By then, another thread may have ended this session, and may even have started the next. */
void agent_session_init(struct agent_session *session, jvmtiEnv *jvmti,
			void (*over)(uint64_t number, JNIEnv *jni));

/* Starts sampling. Returns null, or why it cannot start. */
const char *agent_session_start(struct agent_session *session, JNIEnv *jni,
				const struct agent_options *options);

/* Ends sampling, writes the result and frees everything. Returns false if the sampler's thread
 * does not end: then the session can never be used again. */
bool agent_session_finish(struct agent_session *session, JNIEnv *jni);

/* Writes the part, or the profile so far, and returns when that is done. */
void agent_session_ask(struct agent_session *session, enum agent_asked asked);

/* In agent.c. Switches the events of threads and classes on and off; off, it returns when none of them is in
 * progress. */
void agent_listen(bool on);

#endif
