/* SPDX-License-Identifier: MIT
 *
 * The thread that retrieves traces, where the technique retrieves. A retrieve waits until each
 * sampled thread has reached a poll. If more threads run than there are processors, that takes
 * many intervals, and the sampler's thread would miss them.
 */
#include "clock.h"
#include "own_thread.h"
#include "session.h"

#define RETRIEVE_NS UINT64_C(100000000)

/* Returns earlier if there is much to retrieve. Returns false if the session is to stop. */
static bool sleep_until(struct agent_session *session, uint64_t due)
{
	const struct timespec time = agent_timespec(due);
	bool stopping;

	pthread_mutex_lock(&session->lock);
	while (!session->stopping && !session->hurry && agent_now() < due)
		pthread_cond_timedwait(&session->changed, &session->lock, &time);
	stopping = session->stopping;
	pthread_mutex_unlock(&session->lock);
	return !stopping;
}

static void JNICALL run(jvmtiEnv *jvmti, JNIEnv *jni, void *argument)
{
	struct agent_session *session = argument;

	(void)jvmti;
	agent_threads_remove(&session->threads, jni, session->retriever);
	while (sleep_until(session, agent_now() + RETRIEVE_NS))
		if ((*jni)->PushLocalFrame(jni, 64)) { /* the heap is full: later */
			(*jni)->ExceptionClear(jni);
		} else {
			agent_session_retrieve(session, jni);
			(*jni)->PopLocalFrame(jni, NULL);
		}
	pthread_mutex_lock(&session->lock);
	session->retriever_runs = false;
	pthread_cond_broadcast(&session->changed);
	pthread_mutex_unlock(&session->lock);
}

void agent_retriever_start(struct agent_session *session, JNIEnv *jni)
{
	if (!session->technique->retrieve)
		return;
	session->retriever_runs = true;
	if (agent_own_thread_start(session->jvmti, jni, "incstack retriever", run, session,
				   &session->retriever))
		session->retriever_runs = false;
}
