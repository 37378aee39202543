/* SPDX-License-Identifier: MIT
 *
 * The thread that samples: at each time of a grid of absolute times it lets the technique take
 * samples. Times that have passed by then are missed, and their samples lost.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include <incstack/sampler.h>

#include "say.h"
#include "session.h"

#define NS_PER_S UINT64_C(1000000000)
#define HOUSEKEEPING_NS UINT64_C(1000000000)

enum { STOP_SECONDS = 10 };

uint64_t agent_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* ---- ticks -------------------------------------------------------------------------- */

struct grid {
	uint64_t due, housekeeping, split, end; /* the next time of each */
};

/* Does what another thread has asked for. Called under the lock, which it releases meanwhile. */
static void serve(struct agent_session *session, JNIEnv *jni, uint64_t due)
{
	bool next = session->asked == AGENT_ASKED_NEXT;

	pthread_mutex_unlock(&session->lock);
	agent_session_dump(session, jni, next);
	pthread_mutex_lock(&session->lock);
	session->asked = AGENT_ASKED_NOTHING;
	agent_ticker_set(&session->ticker, due);
	pthread_cond_broadcast(&session->changed);
}

/* Waits for the time, or until another thread wants something; perhaps for a shorter time. Called
 * under the lock, which it releases meanwhile. */
static void doze(struct agent_session *session, uint64_t due)
{
	const struct timespec time = {.tv_sec = (time_t)(due / NS_PER_S),
				      .tv_nsec = (long)(due % NS_PER_S)};

	if (!session->ticker.works) {
		pthread_cond_timedwait(&session->changed, &session->lock, &time);
		return;
	}
	pthread_mutex_unlock(&session->lock);
	agent_ticker_wait(&session->ticker, due);
	pthread_mutex_lock(&session->lock);
}

/* Waits until the time is due. Returns false if the session is to stop. */
static bool sleep_until(struct agent_session *session, JNIEnv *jni, uint64_t due)
{
	bool stopping;

	pthread_mutex_lock(&session->lock);
	while (!session->stopping && (session->asked || agent_now() < due))
		if (session->asked)
			serve(session, jni, due);
		else
			doze(session, due);
	stopping = session->stopping;
	pthread_mutex_unlock(&session->lock);
	return !stopping;
}

static void count_tick(struct agent_session *session, const struct agent_tick *tick)
{
	session->counted.ticks++;
	session->counted.wanted += tick->wanted;
	if (tick->wanted > tick->taken)
		agent_collector_lose(&session->collector, tick->wanted - tick->taken);
}

/* Sets the next time on the grid. Times that have passed are missed. Each is counted with as many
 * samples as the last tick. */
static void advance(struct agent_session *session, struct grid *grid, const struct agent_tick *tick)
{
	uint64_t interval = session->options.interval_ns, now = agent_now();

	grid->due += interval;
	if (grid->due < now) {
		uint64_t missed = (now - grid->due) / interval + 1;

		session->counted.missed += missed;
		session->counted.wanted += missed * tick->wanted;
		agent_collector_lose(&session->collector, missed * tick->wanted);
		grid->due += missed * interval;
	}
}

/* Does the work that is not done at every tick. */
static void look_after(struct agent_session *session, JNIEnv *jni, struct grid *grid)
{
	if (grid->due >= grid->housekeeping) {
		agent_methods_sweep(&session->methods, jni);
		grid->housekeeping = grid->due + HOUSEKEEPING_NS;
	}
	if (grid->due >= grid->split) {
		agent_session_dump(session, jni, true);
		grid->split += session->options.split_ns;
	}
}

/* Lets the technique sample. The extension makes no local references at a tick. */
static void sample(struct agent_session *session, JNIEnv *jni, struct agent_tick *tick)
{
	if (session->technique->retrieve) {
		session->technique->tick(session, jni, tick);
	} else if ((*jni)->PushLocalFrame(jni, 64)) { /* the heap is full: no sample */
		(*jni)->ExceptionClear(jni);
		tick->wanted = session->samples;
	} else {
		session->technique->tick(session, jni, tick);
		(*jni)->PopLocalFrame(jni, NULL);
	}
}

static void take_tick(struct agent_session *session, JNIEnv *jni, struct grid *grid)
{
	struct agent_tick tick = {.due = grid->due};

	sample(session, jni, &tick);
	count_tick(session, &tick); /* before a new part may begin */
	look_after(session, jni, grid);
	advance(session, grid, &tick);
}

/* Returns whether the duration has passed. */
static bool take_ticks(struct agent_session *session, JNIEnv *jni)
{
	const struct agent_options *options = &session->options;
	uint64_t now = session->start_ns;
	struct grid grid = {.due = now + options->interval_ns,
			    .housekeeping = now + HOUSEKEEPING_NS,
			    .split = options->split_ns ? now + options->split_ns : UINT64_MAX,
			    .end = options->duration_ns ? now + options->duration_ns : UINT64_MAX};

	agent_ticker_set(&session->ticker, grid.due);
	while (grid.due <= grid.end) {
		if (!sleep_until(session, jni, grid.due))
			return false;
		take_tick(session, jni, &grid);
	}
	return true;
}

/* Without a real-time priority the kernel may let another thread run on for some milliseconds. */
static void be_prompt(const struct agent_options *options)
{
	const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

	incstack_sampler_be_prompt();
	if (options->realtime && sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest))
		agent_say("the sampler gets no real-time priority (%s); it samples without",
			  strerror(errno));
}

static void JNICALL run(jvmtiEnv *jvmti, JNIEnv *jni, void *argument)
{
	struct agent_session *session = argument;
	const uint64_t number = session->number;
	bool over;

	(void)jvmti;
	agent_retriever_start(session, jni);
	be_prompt(&session->options);
	agent_threads_remove(&session->threads, jni, session->sampler);
	over = take_ticks(session, jni);
	pthread_mutex_lock(&session->lock);
	session->ended = true;
	pthread_cond_broadcast(&session->changed);
	pthread_mutex_unlock(&session->lock);
	if (over)
		agent_duration_over(number, jni);
}

/* ---- life --------------------------------------------------------------------------- */

/* Returns new Thread(name), as a global reference; null if there is no memory. */
static jthread make_thread(JNIEnv *jni, const char *its_name)
{
	jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
	jmethodID constructor =
		class ? (*jni)->GetMethodID(jni, class, "<init>", "(Ljava/lang/String;)V") : NULL;
	jstring name = constructor ? (*jni)->NewStringUTF(jni, its_name) : NULL;
	jobject thread = name ? (*jni)->NewObject(jni, class, constructor, name) : NULL;
	jthread made = thread ? (*jni)->NewGlobalRef(jni, thread) : NULL;

	if ((*jni)->ExceptionCheck(jni))
		(*jni)->ExceptionClear(jni);
	return made;
}

const char *agent_thread_start(struct agent_session *session, JNIEnv *jni, const char *name,
			       jvmtiStartFunction function, jthread *thread)
{
	*thread = make_thread(jni, name);
	if (!*thread)
		return "cannot make a thread: out of memory";
	if ((*session->jvmti)
		    ->RunAgentThread(session->jvmti, *thread, function, session,
				     JVMTI_THREAD_MAX_PRIORITY)) {
		(*jni)->DeleteGlobalRef(jni, *thread);
		*thread = NULL;
		return "no thread can be started";
	}
	return NULL;
}

const char *agent_sampler_start(struct agent_session *session, JNIEnv *jni)
{
	agent_ticker_open(&session->ticker, session->options.interval_ns);
	return agent_thread_start(session, jni, "incstack sampler", run, &session->sampler);
}

/* Called under the lock. */
static void notify(struct agent_session *session)
{
	pthread_cond_broadcast(&session->changed);
	agent_ticker_wake(&session->ticker);
}

bool agent_sampler_stop(struct agent_session *session)
{
	uint64_t limit = agent_now() + STOP_SECONDS * NS_PER_S;
	const struct timespec time = {.tv_sec = (time_t)(limit / NS_PER_S),
				      .tv_nsec = (long)(limit % NS_PER_S)};
	bool ended;

	pthread_mutex_lock(&session->lock);
	session->stopping = true;
	notify(session);
	while ((!session->ended || session->retriever_runs) && agent_now() < limit)
		pthread_cond_timedwait(&session->changed, &session->lock, &time);
	ended = session->ended && !session->retriever_runs;
	pthread_mutex_unlock(&session->lock);
	return ended;
}

void agent_sampler_ask(struct agent_session *session, enum agent_asked asked)
{
	pthread_mutex_lock(&session->lock);
	if (!session->ended)
		session->asked = asked;
	notify(session);
	while (session->asked && !session->ended)
		pthread_cond_wait(&session->changed, &session->lock);
	pthread_mutex_unlock(&session->lock);
}
