/* SPDX-License-Identifier: MIT
 *
 * The platform threads of the JVM that are alive, with what the agent remembers of each.
 */
#ifndef AGENT_THREADS_H
#define AGENT_THREADS_H

#include <jvmti.h>
#include <pthread.h>
#include <stdbool.h>

#include "collector.h"

struct agent_thread {
	struct agent_thread *next, *before; /* a ring */
	jthread ref;                        /* global */
	char *name;                         /* null: not asked for yet */
	uint32_t references;
	uint64_t began_ns;           /* its processor time when it was added */
	struct agent_last_walk last; /* only the sampler uses it */
};

struct agent_threads {
	jvmtiEnv *jvmti;
	pthread_mutex_t lock;
	bool open;
	struct agent_thread *cursor; /* where the next choice begins; null: no thread */
	uint32_t count;
	uint64_t refused;  /* threads for which there was no memory */
	uint64_t ended_ns; /* processor time of threads that are not there any more */
};

/* The result of a choice. */
struct agent_choice {
	struct agent_thread **chosen; /* room for `wanted` */
	uint32_t count;
	uint32_t running, waiting; /* only those that the choice looked at */
};

void agent_threads_open(struct agent_threads *threads, jvmtiEnv *jvmti);
void agent_threads_close(struct agent_threads *threads, JNIEnv *jni);

/* Adds a thread, unless it is known already. */
void agent_threads_add(struct agent_threads *threads, JNIEnv *jni, jthread thread);
void agent_threads_add_all(struct agent_threads *threads, JNIEnv *jni);
void agent_threads_remove(struct agent_threads *threads, JNIEnv *jni, jthread thread);

/* The processor time in ns that the threads have used since they were added, also those that ended. */
uint64_t agent_threads_processor_time(struct agent_threads *threads);

/* Chooses up to `wanted` threads that run, the next ones of the ring each time. With `waiting`
 * also threads that wait, split as incstack_safepoint_split does. Drop each one of them. */
void agent_threads_choose(struct agent_threads *threads, uint32_t wanted, bool waiting,
			  struct agent_choice *choice);

/* The record of a thread; null if it is not known. Drop it. */
struct agent_thread *agent_threads_find(struct agent_threads *threads, jthread thread);
void agent_threads_drop(struct agent_threads *threads, JNIEnv *jni, struct agent_thread *thread);

/* Returns the name that the thread had when its name was first asked for. */
const char *agent_thread_name(struct agent_threads *threads, JNIEnv *jni,
			      struct agent_thread *thread);

/* Whether a thread with this JVMTI state runs Java code, its own or that of a virtual thread.
 * Blocked threads and those in native code wait. */
bool agent_state_runs(jint state);

#endif
