/* SPDX-License-Identifier: MIT
 *
 * The thread that retrieves traces.
 */
#include "retriever.h"

#include "clock.h"
#include "own_thread.h"

#define RETRIEVE_NS (AGENT_NS_PER_S / 10)

void agent_retriever_init(struct agent_retriever *retriever, jvmtiEnv *jvmti,
			  struct agent_threads *threads)
{
	retriever->jvmti = jvmti;
	retriever->threads = threads;
	pthread_mutex_init(&retriever->lock, NULL);
	agent_condition_init(&retriever->changed);
}

/* Returns earlier if there is much to retrieve. Returns false if the thread is to stop. */
static bool sleep_until(struct agent_retriever *retriever, uint64_t due)
{
	const struct timespec time = agent_timespec(due);
	bool stopping;

	pthread_mutex_lock(&retriever->lock);
	while (!retriever->stopping && !atomic_load(&retriever->hurry) && agent_now() < due)
		pthread_cond_timedwait(&retriever->changed, &retriever->lock, &time);
	stopping = retriever->stopping;
	pthread_mutex_unlock(&retriever->lock);
	return !stopping;
}

static void JNICALL run(jvmtiEnv *jvmti, JNIEnv *jni, void *argument)
{
	struct agent_retriever *retriever = argument;

	(void)jvmti;
	agent_threads_remove(retriever->threads, jni, retriever->thread);
	while (sleep_until(retriever, agent_now() + RETRIEVE_NS))
		if ((*jni)->PushLocalFrame(jni, 64)) { /* the heap is full: later */
			(*jni)->ExceptionClear(jni);
		} else {
			retriever->retrieve(retriever->context, jni);
			(*jni)->PopLocalFrame(jni, NULL);
		}
	pthread_mutex_lock(&retriever->lock);
	retriever->runs = false;
	pthread_cond_broadcast(&retriever->changed);
	pthread_mutex_unlock(&retriever->lock);
}

void agent_retriever_start(struct agent_retriever *retriever, JNIEnv *jni,
			   void (*retrieve)(void *context, JNIEnv *jni), void *context)
{
	retriever->retrieve = retrieve;
	retriever->context = context;
	retriever->stopping = false;
	retriever->runs = true;
	if (agent_own_thread_start(retriever->jvmti, jni, "incstack retriever", run, retriever,
				   &retriever->thread))
		retriever->runs = false;
}

bool agent_retriever_stop(struct agent_retriever *retriever, uint64_t limit)
{
	const struct timespec time = agent_timespec(limit);
	bool ended;

	pthread_mutex_lock(&retriever->lock);
	retriever->stopping = true;
	pthread_cond_broadcast(&retriever->changed);
	while (!(ended = !retriever->runs) && agent_now() < limit)
		pthread_cond_timedwait(&retriever->changed, &retriever->lock, &time);
	pthread_mutex_unlock(&retriever->lock);
	return ended;
}

void agent_retriever_close(struct agent_retriever *retriever, JNIEnv *jni)
{
	if (retriever->thread)
		(*jni)->DeleteGlobalRef(jni, retriever->thread);
	retriever->thread = NULL;
	atomic_store(&retriever->hurry, false);
}

void agent_retriever_hurry(struct agent_retriever *retriever)
{
	if (atomic_exchange(&retriever->hurry, true))
		return;
	pthread_mutex_lock(&retriever->lock);
	pthread_cond_broadcast(&retriever->changed);
	pthread_mutex_unlock(&retriever->lock);
}

void agent_retriever_begun(struct agent_retriever *retriever)
{
	atomic_store(&retriever->hurry, false);
}
