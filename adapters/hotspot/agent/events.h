/* SPDX-License-Identifier: MIT
 *
 * The events by which the JVM tells that threads start and end and that classes are prepared. While a session
 * lasts, they go on to its threads and its technique.
 */
#ifndef AGENT_EVENTS_H
#define AGENT_EVENTS_H

#include <jvmti.h>
#include <pthread.h>
#include <stdbool.h>

#include "technique.h"
#include "threads.h"

struct agent_events {
	jvmtiEnv *jvmti;
	/* Read-locked by each event. One may come within another. */
	pthread_rwlock_t gate;
	bool on;
	struct agent_threads *threads;
	struct agent_technique *technique;
};

/* Called once. */
void agent_events_init(struct agent_events *events, jvmtiEnv *jvmti);

/* Switches the events on. The threads and the technique stay the caller's. */
void agent_events_start(struct agent_events *events, struct agent_threads *threads,
			struct agent_technique *technique);

/* Switches the events off. Returns when none is in progress. */
void agent_events_stop(struct agent_events *events);

/* What the JVM's callbacks call. */
void agent_events_thread_starts(struct agent_events *events, JNIEnv *jni, jthread thread);
void agent_events_thread_ends(struct agent_events *events, JNIEnv *jni, jthread thread);
void agent_events_class_prepared(struct agent_events *events, JNIEnv *jni, jclass class);

#endif
