/* SPDX-License-Identifier: MIT
 *
 * The threads that sample: at each time of a grid of absolute times, one of them lets the technique
 * take samples. Times that have passed by then are missed, and their samples lost. If the interval is
 * short, several threads take turns; see ticker.h.
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "safepoint/prompt.h"
#include "clock.h"
#include "own_thread.h"
#include "say.h"
#include "session.h"

#define HOUSEKEEPING_NS AGENT_NS_PER_S

/* ---- waits -------------------------------------------------------------------------- */

/* Sets the timers of the thread for its next turns. Called under the lock. */
static void set_ticker(struct agent_sampler *sampler)
{
	const struct agent_session *session = sampler->session;

	agent_ticker_set(&sampler->ticker, sampler->turn,
			 session->turns * session->shared.options.interval_ns);
}

static bool leads(const struct agent_sampler *sampler)
{
	return sampler == sampler->session->samplers;
}

/* Called under the lock. */
static bool is_asked(const struct agent_sampler *sampler)
{
	return leads(sampler) && sampler->session->asked != AGENT_ASKED_NOTHING;
}

/* Does what another thread has asked for. Called under the lock, which it releases meanwhile. */
static void serve(struct agent_sampler *sampler, JNIEnv *jni)
{
	struct agent_session *session = sampler->session;
	bool next = session->asked == AGENT_ASKED_NEXT;

	pthread_mutex_unlock(&session->lock);
	agent_session_dump(session, jni, next);
	pthread_mutex_lock(&session->lock);
	session->asked = AGENT_ASKED_NOTHING;
	set_ticker(sampler);
	pthread_cond_broadcast(&session->changed);
}

/* Waits for the thread's turn, or until another thread wants something; perhaps for a shorter time.
 * Called under the lock, which it releases meanwhile. */
static void doze(struct agent_sampler *sampler)
{
	struct agent_session *session = sampler->session;
	const struct timespec time = agent_timespec(sampler->turn);

	if (!sampler->ticker.works) {
		pthread_cond_timedwait(&session->changed, &session->lock, &time);
		return;
	}
	pthread_mutex_unlock(&session->lock);
	agent_ticker_wait(&sampler->ticker, sampler->turn);
	pthread_mutex_lock(&session->lock);
}

/* Waits until it is the thread's turn. Returns false if the session is to stop. */
static bool wait_for_turn(struct agent_sampler *sampler, JNIEnv *jni)
{
	struct agent_session *session = sampler->session;
	bool stopping;

	pthread_mutex_lock(&session->lock);
	while (!session->stopping && (is_asked(sampler) || agent_now() < sampler->turn))
		if (is_asked(sampler))
			serve(sampler, jni);
		else
			doze(sampler);
	stopping = session->stopping;
	pthread_mutex_unlock(&session->lock);
	return !stopping;
}

/* Finds the thread's next turn. */
static void pass_turn(struct agent_sampler *sampler)
{
	const uint64_t step =
		sampler->session->turns * sampler->session->shared.options.interval_ns;
	uint64_t now = agent_now();

	sampler->turn += step;
	if (sampler->turn < now)
		sampler->turn += ((now - sampler->turn) / step + 1) * step;
}

/* ---- ticks -------------------------------------------------------------------------- */

/* The next time at which the leader does each. */
struct plan {
	uint64_t housekeeping, split;
};

/* If no other thread takes turns, times that have passed during a tick are missed, too. Otherwise a
 * slow technique would leave the program no time between its ticks. */
static uint64_t skip(struct agent_session *session)
{
	return session->turns > 1 ? 0 : agent_grid_skip(&session->grid);
}

/* Each time that was missed is counted with as many samples as this tick. */
static void count_tick(struct agent_session *session, const struct agent_tick *tick,
		       uint64_t missed)
{
	pthread_mutex_lock(&session->lock);
	session->ticks.taken++;
	session->ticks.missed += missed;
	session->ticks.wanted += (missed + 1) * tick->wanted;
	pthread_mutex_unlock(&session->lock);
	if (missed)
		agent_collector_lose(&session->shared.collector, AGENT_LOSS_LATE,
				     missed * tick->wanted);
	if (tick->wanted > tick->taken)
		agent_collector_lose(&session->shared.collector, tick->reason,
				     tick->wanted - tick->taken);
}

static void take_tick(struct agent_session *session, JNIEnv *jni)
{
	struct agent_tick tick = {.reason = AGENT_LOSS_REFUSED};
	uint64_t missed;

	if (!agent_grid_take(&session->grid, &tick.due, &missed))
		return;
	session->technique->kind->tick(session->technique, jni, &tick);
	count_tick(session, &tick, missed + skip(session));
}

/* Does the work that is not done at every tick. */
static void look_after(struct agent_sampler *sampler, JNIEnv *jni, struct plan *plan)
{
	struct agent_session *session = sampler->session;

	if (sampler->turn >= plan->housekeeping) {
		if (session->technique->kind->sweep)
			session->technique->kind->sweep(session->technique, jni);
		plan->housekeeping = sampler->turn + HOUSEKEEPING_NS;
	}
	if (sampler->turn >= plan->split) {
		agent_session_dump(session, jni, true);
		plan->split += session->shared.options.split_ns;
	}
}

/* Returns whether the duration has passed. */
static bool take_ticks(struct agent_sampler *sampler, JNIEnv *jni)
{
	struct agent_session *session = sampler->session;
	const uint64_t start = session->shared.start_ns, split = session->shared.options.split_ns;
	struct plan plan = {.housekeeping = start + HOUSEKEEPING_NS,
			    .split = split ? start + split : UINT64_MAX};

	for (; sampler->turn <= session->grid.end; pass_turn(sampler)) {
		if (!wait_for_turn(sampler, jni))
			return false;
		take_tick(session, jni);
		if (leads(sampler))
			look_after(sampler, jni, &plan);
	}
	return true;
}

/* ---- threads ------------------------------------------------------------------------ */

/* Without a real-time priority the kernel may let another thread run on for some milliseconds. Returns
 * whether the calling thread has one. */
static bool be_prompt(const struct agent_options *options)
{
	const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

	(void)incstack__be_prompt(false);
	if (!options->realtime)
		return false;
	if (!sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest))
		return true;
	agent_say("the sampler gets no real-time priority (%s); it samples without",
		  strerror(errno));
	return false;
}

/* Waits until all threads have been started. Returns false if the session stops before. */
static bool wait_for_start(struct agent_session *session)
{
	bool started;

	pthread_mutex_lock(&session->lock);
	while (!session->turns && !session->stopping)
		pthread_cond_wait(&session->changed, &session->lock);
	started = session->turns != 0;
	pthread_mutex_unlock(&session->lock);
	return started;
}

static void count_follower(struct agent_session *session, int change)
{
	pthread_mutex_lock(&session->lock);
	session->followers += (unsigned)change;
	pthread_cond_broadcast(&session->changed);
	pthread_mutex_unlock(&session->lock);
}

static void JNICALL follow(jvmtiEnv *jvmti, JNIEnv *jni, void *argument)
{
	struct agent_sampler *sampler = argument;
	struct agent_session *session = sampler->session;

	(void)jvmti;
	(void)incstack__be_prompt(false);
	agent_threads_remove(&session->shared.threads, jni, sampler->thread);
	if (wait_for_start(session))
		(void)take_ticks(sampler, jni);
	count_follower(session, -1);
}

static bool start_follower(struct agent_session *session, JNIEnv *jni,
			   struct agent_sampler *follower)
{
	count_follower(session, 1);
	if (!agent_own_thread_start(session->shared.jvmti, jni, "incstack sampler", follow,
				    follower, &follower->thread))
		return true;
	count_follower(session, -1);
	return false;
}

/* Starts the threads that take turns with the calling one. If one cannot be started, there are fewer. A
 * request that samples waiting threads takes long, so one thread makes such requests. */
static void start_followers(struct agent_session *session, JNIEnv *jni, bool real_time)
{
	const struct agent_options *options = &session->shared.options;
	const bool one = real_time || options->waiting || !session->technique->kind->takes_turns;
	const unsigned wanted = one ? 1 : agent_ticker_threads(options->interval_ns);
	unsigned started = 1;

	while (started < wanted && start_follower(session, jni, &session->samplers[started]))
		started++;
	pthread_mutex_lock(&session->lock);
	session->turns = started;
	for (unsigned i = 0; i < started; i++) {
		session->samplers[i].turn =
			session->shared.start_ns + (i + 1) * session->shared.options.interval_ns;
		set_ticker(&session->samplers[i]);
	}
	pthread_cond_broadcast(&session->changed);
	pthread_mutex_unlock(&session->lock);
}

static void JNICALL lead(jvmtiEnv *jvmti, JNIEnv *jni, void *argument)
{
	struct agent_sampler *sampler = argument;
	struct agent_session *session = sampler->session;
	const uint64_t number = session->number;
	bool over;

	(void)jvmti;
	agent_threads_remove(&session->shared.threads, jni, sampler->thread);
	start_followers(session, jni, be_prompt(&session->shared.options));
	over = take_ticks(sampler, jni);
	pthread_mutex_lock(&session->lock);
	session->ended = true;
	pthread_cond_broadcast(&session->changed);
	pthread_mutex_unlock(&session->lock);
	if (over)
		agent_duration_over(number, jni);
}

/* ---- life --------------------------------------------------------------------------- */

const char *agent_sampler_start(struct agent_session *session, JNIEnv *jni)
{
	const struct agent_options *options = &session->shared.options;
	struct agent_sampler *leader = session->samplers;

	agent_grid_open(&session->grid, session->shared.start_ns, options->interval_ns,
			options->duration_ns);
	for (unsigned i = 0; i < agent_ticker_threads(options->interval_ns); i++)
		agent_ticker_open(&session->samplers[i].ticker);
	return agent_own_thread_start(session->shared.jvmti, jni, "incstack sampler", lead, leader,
				      &leader->thread);
}

/* Called under the lock. */
static bool all_ended(const struct agent_session *session)
{
	return session->ended && !session->followers;
}

bool agent_sampler_stop(struct agent_session *session, uint64_t limit)
{
	const struct timespec time = agent_timespec(limit);
	bool ended;

	pthread_mutex_lock(&session->lock);
	session->stopping = true;
	pthread_cond_broadcast(&session->changed);
	for (unsigned i = 0; i < agent_ticker_threads(session->shared.options.interval_ns); i++)
		agent_ticker_wake(&session->samplers[i].ticker);
	while (!(ended = all_ended(session)) && agent_now() < limit)
		pthread_cond_timedwait(&session->changed, &session->lock, &time);
	pthread_mutex_unlock(&session->lock);
	return ended;
}

void agent_sampler_ask(struct agent_session *session, enum agent_asked asked)
{
	pthread_mutex_lock(&session->lock);
	if (!session->ended)
		session->asked = asked;
	pthread_cond_broadcast(&session->changed);
	agent_ticker_wake(&session->samplers[0].ticker);
	while (session->asked && !session->ended)
		pthread_cond_wait(&session->changed, &session->lock);
	pthread_mutex_unlock(&session->lock);
}
