/* SPDX-License-Identifier: MIT
 *
 * The threads that sample.
 */
#include "sampler.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "safepoint/prompt.h"
#include "clock.h"
#include "own_thread.h"
#include "say.h"

#define HOUSEKEEPING_NS AGENT_NS_PER_S

/* ---- waits -------------------------------------------------------------------------- */

/* Sets the timers of the thread for its next turns. Called under the lock. */
static void set_ticker(struct agent_taker *taker)
{
	const struct agent_sampler *sampler = taker->sampler;

	agent_ticker_set(&taker->ticker, taker->turn,
			 sampler->turns * sampler->shared->options.interval_ns);
}

static bool leads(const struct agent_taker *taker)
{
	return taker == taker->sampler->takers;
}

/* Called under the lock. */
static bool is_asked(const struct agent_taker *taker)
{
	return leads(taker) && taker->sampler->asked != AGENT_ASKED_NOTHING;
}

/* Does what another thread has asked for. Called under the lock, which it releases meanwhile. */
static void serve(struct agent_taker *taker, JNIEnv *jni)
{
	struct agent_sampler *sampler = taker->sampler;
	bool next = sampler->asked == AGENT_ASKED_NEXT;

	pthread_mutex_unlock(&sampler->lock);
	sampler->calls.dump(sampler->calls.context, jni, next);
	pthread_mutex_lock(&sampler->lock);
	sampler->asked = AGENT_ASKED_NOTHING;
	set_ticker(taker);
	pthread_cond_broadcast(&sampler->changed);
}

/* Waits for the thread's turn, or until another thread wants something; perhaps for a shorter time.
 * Called under the lock, which it releases meanwhile. */
static void doze(struct agent_taker *taker)
{
	struct agent_sampler *sampler = taker->sampler;
	const struct timespec time = agent_timespec(taker->turn);

	if (!taker->ticker.works) {
		pthread_cond_timedwait(&sampler->changed, &sampler->lock, &time);
		return;
	}
	pthread_mutex_unlock(&sampler->lock);
	agent_ticker_wait(&taker->ticker, taker->turn);
	pthread_mutex_lock(&sampler->lock);
}

/* Waits until it is the thread's turn. Returns false if the session is to stop. */
static bool wait_for_turn(struct agent_taker *taker, JNIEnv *jni)
{
	struct agent_sampler *sampler = taker->sampler;
	bool stopping;

	pthread_mutex_lock(&sampler->lock);
	while (!sampler->stopping && (is_asked(taker) || agent_now() < taker->turn))
		if (is_asked(taker))
			serve(taker, jni);
		else
			doze(taker);
	stopping = sampler->stopping;
	pthread_mutex_unlock(&sampler->lock);
	return !stopping;
}

/* Finds the thread's next turn. */
static void pass_turn(struct agent_taker *taker)
{
	const uint64_t step = taker->sampler->turns * taker->sampler->shared->options.interval_ns;
	uint64_t now = agent_now();

	taker->turn += step;
	if (taker->turn < now)
		taker->turn += ((now - taker->turn) / step + 1) * step;
}

/* ---- ticks -------------------------------------------------------------------------- */

/* The next time at which the leader does each. */
struct plan {
	uint64_t housekeeping, split;
};

/* If no other thread takes turns, times that have passed during a tick are missed, too. Otherwise a
 * slow technique would leave the program no time between its ticks. */
static uint64_t skip(struct agent_sampler *sampler)
{
	return sampler->turns > 1 ? 0 : agent_grid_skip(&sampler->grid);
}

/* Each time that was missed is counted with as many samples as this tick. */
static void count_tick(struct agent_sampler *sampler, const struct agent_tick *tick,
		       uint64_t missed)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->ticks.taken++;
	sampler->ticks.missed += missed;
	sampler->ticks.wanted += (missed + 1) * tick->wanted;
	pthread_mutex_unlock(&sampler->lock);
	if (missed)
		agent_collector_lose(&sampler->shared->collector, AGENT_LOSS_LATE,
				     missed * tick->wanted);
	if (tick->wanted > tick->taken)
		agent_collector_lose(&sampler->shared->collector, tick->reason,
				     tick->wanted - tick->taken);
}

static void take_tick(struct agent_sampler *sampler, JNIEnv *jni)
{
	struct agent_tick tick = {.reason = AGENT_LOSS_REFUSED};
	uint64_t missed;

	if (!agent_grid_take(&sampler->grid, &tick.due, &missed))
		return;
	sampler->technique->kind->tick(sampler->technique, jni, &tick);
	count_tick(sampler, &tick, missed + skip(sampler));
}

/* Does the work that is not done at every tick. */
static void look_after(struct agent_taker *taker, JNIEnv *jni, struct plan *plan)
{
	struct agent_sampler *sampler = taker->sampler;

	if (taker->turn >= plan->housekeeping) {
		if (sampler->technique->kind->sweep)
			sampler->technique->kind->sweep(sampler->technique, jni);
		plan->housekeeping = taker->turn + HOUSEKEEPING_NS;
	}
	if (taker->turn >= plan->split) {
		sampler->calls.dump(sampler->calls.context, jni, true);
		plan->split += sampler->shared->options.split_ns;
	}
}

/* Returns whether the duration has passed. */
static bool take_ticks(struct agent_taker *taker, JNIEnv *jni)
{
	struct agent_sampler *sampler = taker->sampler;
	const uint64_t start = sampler->shared->start_ns, split = sampler->shared->options.split_ns;
	struct plan plan = {.housekeeping = start + HOUSEKEEPING_NS,
			    .split = split ? start + split : UINT64_MAX};

	for (; taker->turn <= sampler->grid.end; pass_turn(taker)) {
		if (!wait_for_turn(taker, jni))
			return false;
		take_tick(sampler, jni);
		if (leads(taker))
			look_after(taker, jni, &plan);
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
static bool wait_for_start(struct agent_sampler *sampler)
{
	bool started;

	pthread_mutex_lock(&sampler->lock);
	while (!sampler->turns && !sampler->stopping)
		pthread_cond_wait(&sampler->changed, &sampler->lock);
	started = sampler->turns != 0;
	pthread_mutex_unlock(&sampler->lock);
	return started;
}

static void count_follower(struct agent_sampler *sampler, int change)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->followers += (unsigned)change;
	pthread_cond_broadcast(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
}

static void JNICALL follow(jvmtiEnv *jvmti, JNIEnv *jni, void *argument)
{
	struct agent_taker *taker = argument;
	struct agent_sampler *sampler = taker->sampler;

	(void)jvmti;
	(void)incstack__be_prompt(false);
	agent_threads_remove(&sampler->shared->threads, jni, taker->thread);
	if (wait_for_start(sampler))
		(void)take_ticks(taker, jni);
	count_follower(sampler, -1);
}

static bool start_follower(struct agent_sampler *sampler, JNIEnv *jni, struct agent_taker *follower)
{
	count_follower(sampler, 1);
	if (!agent_own_thread_start(sampler->shared->jvmti, jni, "incstack sampler", follow,
				    follower, &follower->thread))
		return true;
	count_follower(sampler, -1);
	return false;
}

/* Starts the threads that take turns with the calling one. If one cannot be started, there are fewer. A
 * request that samples waiting threads takes long, so one thread makes such requests. */
static void start_followers(struct agent_sampler *sampler, JNIEnv *jni, bool real_time)
{
	const struct agent_options *options = &sampler->shared->options;
	const bool one = real_time || options->waiting || !sampler->technique->kind->takes_turns;
	const unsigned wanted = one ? 1 : agent_ticker_threads(options->interval_ns);
	unsigned started = 1;

	while (started < wanted && start_follower(sampler, jni, &sampler->takers[started]))
		started++;
	pthread_mutex_lock(&sampler->lock);
	sampler->turns = started;
	for (unsigned i = 0; i < started; i++) {
		sampler->takers[i].turn =
			sampler->shared->start_ns + (i + 1) * sampler->shared->options.interval_ns;
		set_ticker(&sampler->takers[i]);
	}
	pthread_cond_broadcast(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
}

static void JNICALL lead(jvmtiEnv *jvmti, JNIEnv *jni, void *argument)
{
	struct agent_taker *taker = argument;
	struct agent_sampler *sampler = taker->sampler;
	const struct agent_sampler_calls calls = sampler->calls;
	bool over;

	(void)jvmti;
	agent_threads_remove(&sampler->shared->threads, jni, taker->thread);
	start_followers(sampler, jni, be_prompt(&sampler->shared->options));
	over = take_ticks(taker, jni);
	pthread_mutex_lock(&sampler->lock);
	sampler->ended = true;
	pthread_cond_broadcast(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
	if (over)
		calls.over(calls.context, jni, calls.number);
}

/* ---- life --------------------------------------------------------------------------- */

static void reset_takers(struct agent_sampler *sampler)
{
	for (unsigned i = 0; i < AGENT_TICKER_THREADS_MOST; i++)
		sampler->takers[i] =
			(struct agent_taker){.sampler = sampler, .ticker = AGENT_TICKER_CLOSED};
}

void agent_sampler_init(struct agent_sampler *sampler)
{
	pthread_mutex_init(&sampler->lock, NULL);
	agent_condition_init(&sampler->changed);
	reset_takers(sampler);
}

const char *agent_sampler_start(struct agent_sampler *sampler, JNIEnv *jni,
				struct agent_shared *shared, struct agent_technique *technique,
				const struct agent_sampler_calls *calls)
{
	const struct agent_options *options = &shared->options;
	struct agent_taker *leader = sampler->takers;

	sampler->shared = shared;
	sampler->technique = technique;
	sampler->calls = *calls;
	sampler->ticks = (struct agent_ticks){.taken = 0};
	sampler->asked = AGENT_ASKED_NOTHING;
	sampler->stopping = sampler->ended = false;
	sampler->followers = sampler->turns = 0;
	agent_grid_open(&sampler->grid, shared->start_ns, options->interval_ns,
			options->duration_ns);
	for (unsigned i = 0; i < agent_ticker_threads(options->interval_ns); i++)
		agent_ticker_open(&sampler->takers[i].ticker);
	return agent_own_thread_start(shared->jvmti, jni, "incstack sampler", lead, leader,
				      &leader->thread);
}

void agent_sampler_close(struct agent_sampler *sampler, JNIEnv *jni)
{
	for (unsigned i = 0; i < AGENT_TICKER_THREADS_MOST; i++) {
		agent_ticker_close(&sampler->takers[i].ticker);
		if (sampler->takers[i].thread)
			(*jni)->DeleteGlobalRef(jni, sampler->takers[i].thread);
	}
	reset_takers(sampler);
}

/* Called under the lock. */
static bool all_ended(const struct agent_sampler *sampler)
{
	return sampler->ended && !sampler->followers;
}

bool agent_sampler_stop(struct agent_sampler *sampler, uint64_t limit)
{
	const struct timespec time = agent_timespec(limit);
	bool ended;

	pthread_mutex_lock(&sampler->lock);
	sampler->stopping = true;
	pthread_cond_broadcast(&sampler->changed);
	for (unsigned i = 0; i < agent_ticker_threads(sampler->shared->options.interval_ns); i++)
		agent_ticker_wake(&sampler->takers[i].ticker);
	while (!(ended = all_ended(sampler)) && agent_now() < limit)
		pthread_cond_timedwait(&sampler->changed, &sampler->lock, &time);
	pthread_mutex_unlock(&sampler->lock);
	return ended;
}

void agent_sampler_ask(struct agent_sampler *sampler, enum agent_asked asked)
{
	pthread_mutex_lock(&sampler->lock);
	if (!sampler->ended)
		sampler->asked = asked;
	pthread_cond_broadcast(&sampler->changed);
	agent_ticker_wake(&sampler->takers[0].ticker);
	while (sampler->asked && !sampler->ended)
		pthread_cond_wait(&sampler->changed, &sampler->lock);
	pthread_mutex_unlock(&sampler->lock);
}

void agent_sampler_count(struct agent_sampler *sampler, struct agent_ticks *ticks)
{
	pthread_mutex_lock(&sampler->lock);
	*ticks = sampler->ticks;
	pthread_mutex_unlock(&sampler->lock);
}

void agent_sampler_next_part(struct agent_sampler *sampler, const struct agent_ticks *ticks)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->ticks.taken -= ticks->taken;
	sampler->ticks.missed -= ticks->missed;
	sampler->ticks.wanted -= ticks->wanted;
	pthread_mutex_unlock(&sampler->lock);
}
