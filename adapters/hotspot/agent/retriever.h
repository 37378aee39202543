/* SPDX-License-Identifier: MIT
 *
 * The thread that retrieves traces, where the technique retrieves. A retrieve waits until each
 * sampled thread has reached a poll. If more threads run than there are processors, that takes
 * many intervals, and the sampler's thread would miss them.
 */
#ifndef AGENT_RETRIEVER_H
#define AGENT_RETRIEVER_H

#include <jvmti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "threads.h"

struct agent_retriever {
	/* The same for all sessions, which follow one another. */
	jvmtiEnv *jvmti;
	struct agent_threads *threads; /* without this one */
	pthread_mutex_t lock;          /* of `stopping` and `runs` */
	pthread_cond_t changed;

	void (*retrieve)(void *context, JNIEnv *jni);
	void *context;
	jthread thread; /* global */
	bool stopping, runs;
	_Atomic bool hurry; /* it is to begin at once */
};

/* Called once. The threads stay the caller's. */
void agent_retriever_init(struct agent_retriever *retriever, jvmtiEnv *jvmti,
			  struct agent_threads *threads);

/* Starts the thread, which calls the function ten times a second, and sooner on request. If it cannot be
 * started, nobody calls the function. */
void agent_retriever_start(struct agent_retriever *retriever, JNIEnv *jni,
			   void (*retrieve)(void *context, JNIEnv *jni), void *context);

/* Ends the thread, if it runs. Returns false if it does not end until `limit` (CLOCK_MONOTONIC, ns). */
bool agent_retriever_stop(struct agent_retriever *retriever, uint64_t limit);

/* Called when the thread has ended, or was not started. */
void agent_retriever_close(struct agent_retriever *retriever, JNIEnv *jni);

/* There is much to retrieve: the thread is to call the function at once. Any thread may call this. */
void agent_retriever_hurry(struct agent_retriever *retriever);

/* A retrieve begins, by whatever thread: the request is served. */
void agent_retriever_begun(struct agent_retriever *retriever);

#endif
