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

/* What was found out about a thread that JVMTI says runs. It holds until the thread uses processor time. */
enum agent_seeming {
	AGENT_SEEMS_RIGHT = 0,
	AGENT_SEEMS_IDLE,  /* it waits inside the JVM */
	AGENT_SEEMS_EMPTY, /* it has no Java frame */
};

struct agent_thread {
	struct agent_thread *next, *before; /* a ring */
	jthread ref;                        /* global */
	char *name;                         /* null: not asked for yet */
	uint32_t references;
	uint64_t began_ns; /* its processor time when it was added */
	/* Only the sampler uses the rest. */
	struct agent_last_walk last;
	enum agent_seeming seeming;
	uint64_t seemed_ns; /* its processor time then */
	bool runs;          /* as the last choice with `waiting` saw it */
};

/* The threads that run and those that wait take turns separately; the processor time is another round. Otherwise a choice might meet the same
 * threads of a group again and again, and never the others. */
enum agent_turn { AGENT_TURN_RUNNING = 0, AGENT_TURN_WAITING, AGENT_TURN_TIMED, AGENT_TURN_COUNT };

struct agent_threads {
	jvmtiEnv *jvmti;
	pthread_mutex_t lock;
	bool open;
	struct agent_thread *cursors[AGENT_TURN_COUNT]; /* who is next; null: no thread */
	uint32_t count;
	uint64_t refused;          /* threads for which there was no memory */
	_Atomic uint64_t ended_ns; /* processor time of threads that are not there any more */
};

/* The result of a choice. */
struct agent_choice {
	struct agent_thread **chosen; /* room for `wanted` */
	uint32_t count;
	uint32_t running, waiting; /* only those that the choice looked at */
	uint32_t looked_at;        /* 0 at first; a choice that goes on looks at no thread again */
};

void agent_threads_open(struct agent_threads *threads, jvmtiEnv *jvmti);
void agent_threads_close(struct agent_threads *threads, JNIEnv *jni);

/* Adds a thread, unless it is known already. */
void agent_threads_add(struct agent_threads *threads, JNIEnv *jni, jthread thread);
void agent_threads_add_all(struct agent_threads *threads, JNIEnv *jni);
void agent_threads_remove(struct agent_threads *threads, JNIEnv *jni, jthread thread);

/* The processor time in ns that the threads have used since they were added, also those that ended. */
uint64_t agent_threads_processor_time(struct agent_threads *threads, JNIEnv *jni);

/* Choose up to `wanted` threads, the next ones of the ring each time. Drop each one of them. The first
 * chooses threads that run. The second chooses from all, split as core/split.h says. */
void agent_threads_choose_running(struct agent_threads *threads, JNIEnv *jni, uint32_t wanted,
				  struct agent_choice *choice);
void agent_threads_choose(struct agent_threads *threads, JNIEnv *jni, uint32_t wanted,
			  struct agent_choice *choice);

/* Says that the thread has given no sample, and why. */
void agent_threads_seems(struct agent_threads *threads, struct agent_thread *thread,
			 enum agent_seeming seeming);

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
