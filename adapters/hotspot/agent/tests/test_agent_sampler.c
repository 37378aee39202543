/* SPDX-License-Identifier: MIT
 *
 * The threads that sample, with a JVM that can only start threads, and a technique that notes the times
 * it was called for: each time of the grid is taken once or missed, by however many threads.
 */
#include <stdlib.h>
#include <string.h>

#include "run_suite.h"
#include "clock.h"
#include "say.h"
#include "session.h"

#define US UINT64_C(1000)
#define MS (1000 * US)

enum { NOTED_MOST = 100000 };

/* ---- the JVM ---- */

static struct {
	unsigned may_start; /* agent threads */
	atomic_uint started, removed;
	atomic_int dumps;
} jvm;

struct start {
	jvmtiEnv *jvmti;
	jvmtiStartFunction function;
	void *argument;
};

static const struct JNINativeInterface_ *jni_functions;

static void *run_thread(void *argument)
{
	struct start start = *(struct start *)argument;

	free(argument);
	start.function(start.jvmti, (JNIEnv *)&jni_functions, start.argument);
	return NULL;
}

static jvmtiError JNICALL run_agent_thread(jvmtiEnv *jvmti, jthread thread,
					   jvmtiStartFunction function, const void *argument,
					   jint priority)
{
	struct start *start = malloc(sizeof(*start));
	pthread_t made;

	(void)thread, (void)priority;
	if (atomic_fetch_add(&jvm.started, 1) >= jvm.may_start) {
		free(start);
		return JVMTI_ERROR_OUT_OF_MEMORY;
	}
	*start = (struct start){jvmti, function, (void *)(uintptr_t)argument};
	ck_assert_int_eq(pthread_create(&made, NULL, run_thread, start), 0);
	pthread_detach(made);
	return JVMTI_ERROR_NONE;
}

static jclass JNICALL find_class(JNIEnv *env, const char *name)
{
	(void)env;
	return (jclass)(uintptr_t)name;
}

static jmethodID JNICALL get_method(JNIEnv *env, jclass class, const char *name,
				    const char *signature)
{
	(void)env, (void)class, (void)signature;
	return (jmethodID)(uintptr_t)name;
}

static jstring JNICALL new_string(JNIEnv *env, const char *content)
{
	(void)env;
	return (jstring)(uintptr_t)content;
}

static jobject JNICALL new_object(JNIEnv *env, jclass class, jmethodID constructor, ...)
{
	(void)env, (void)constructor;
	return class;
}

static jobject JNICALL keep(JNIEnv *env, jobject object)
{
	(void)env;
	return object;
}

static void JNICALL drop(JNIEnv *env, jobject object)
{
	(void)env, (void)object;
}

static jboolean JNICALL no_exception(JNIEnv *env)
{
	(void)env;
	return JNI_FALSE;
}

static const struct JNINativeInterface_ jni_table = {.FindClass = find_class,
						     .GetMethodID = get_method,
						     .NewStringUTF = new_string,
						     .NewObject = new_object,
						     .NewGlobalRef = keep,
						     .DeleteGlobalRef = drop,
						     .ExceptionCheck = no_exception};
static const struct JNINativeInterface_ *jni_functions = &jni_table;
static const struct jvmtiInterface_1_ jvmti_table = {.RunAgentThread = run_agent_thread};
static const struct jvmtiInterface_1_ *jvmti_functions = &jvmti_table;

/* ---- the rest of the agent ---- */

void agent_threads_remove(struct agent_threads *threads, JNIEnv *jni, jthread thread)
{
	(void)threads, (void)jni, (void)thread;
	atomic_fetch_add(&jvm.removed, 1);
}

void agent_session_dump(struct agent_session *session, JNIEnv *jni, bool next)
{
	(void)session, (void)jni, (void)next;
	atomic_fetch_add(&jvm.dumps, 1);
}

void agent_duration_over(uint64_t number, JNIEnv *jni)
{
	(void)number, (void)jni;
}

void agent_say(const char *format, ...)
{
	(void)format;
}

/* ---- the technique ---- */

static uint64_t noted[NOTED_MOST];
static atomic_uint count;

static void note(struct agent_technique *technique, JNIEnv *jni, struct agent_tick *tick)
{
	const unsigned i = atomic_fetch_add(&count, 1);

	(void)technique, (void)jni;
	ck_assert_uint_lt(i, NOTED_MOST);
	ck_assert_uint_le(tick->due, agent_now());
	noted[i] = tick->due;
	tick->wanted = tick->taken = 1;
}

static const struct agent_technique_kind turns = {.takes_turns = true, .tick = note};
static const struct agent_technique_kind alone = {.tick = note};

/* ---- a session ---- */

static struct agent_session *open_session(const struct agent_technique_kind *kind,
					  uint64_t interval_ns)
{
	static struct agent_session session;
	static struct agent_technique technique;

	memset(&session, 0, sizeof(session));
	memset(&jvm, 0, sizeof(jvm));
	atomic_store(&count, 0);
	jvm.may_start = AGENT_TICKER_THREADS_MOST;
	pthread_mutex_init(&session.lock, NULL);
	agent_condition_init(&session.changed);
	session.shared.jvmti = &jvmti_functions;
	technique.kind = kind;
	session.technique = &technique;
	session.shared.options.interval_ns = interval_ns;
	session.shared.start_ns = agent_now();
	for (unsigned i = 0; i < AGENT_TICKER_THREADS_MOST; i++)
		session.samplers[i] =
			(struct agent_sampler){.session = &session, .ticker = AGENT_TICKER_CLOSED};
	return &session;
}

static void start(struct agent_session *session)
{
	ck_assert_ptr_null(agent_sampler_start(session, (JNIEnv *)&jni_functions));
}

static void stop(struct agent_session *session)
{
	ck_assert(agent_sampler_stop(session, agent_now() + 10 * AGENT_NS_PER_S));
	for (unsigned i = 0; i < AGENT_TICKER_THREADS_MOST; i++)
		agent_ticker_close(&session->samplers[i].ticker);
}

static void pause_for(uint64_t ns)
{
	const struct timespec time = {.tv_sec = (time_t)(ns / 1000 / MS),
				      .tv_nsec = (long)(ns % (1000 * MS))};

	nanosleep(&time, NULL);
}

static void wait_for_ticks(unsigned wanted)
{
	while (atomic_load(&count) < wanted)
		pause_for(100 * US);
}

static void wait_for_end(struct agent_session *session)
{
	pthread_mutex_lock(&session->lock);
	while (!session->ended || session->followers)
		pthread_cond_wait(&session->changed, &session->lock);
	pthread_mutex_unlock(&session->lock);
}

static int by_time(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Each time from the first to the last that was taken is a time of the grid, and was taken once or was
 * missed. */
static void check_grid(struct agent_session *session)
{
	const uint64_t interval = session->shared.options.interval_ns;
	const unsigned taken = atomic_load(&count);
	uint64_t last;

	ck_assert_uint_gt(taken, 0);
	qsort(noted, taken, sizeof(*noted), by_time);
	for (unsigned i = 0; i < taken; i++) {
		ck_assert_uint_eq((noted[i] - session->shared.start_ns) % interval, 0);
		ck_assert(!i || noted[i] > noted[i - 1]);
	}
	last = (noted[taken - 1] - session->shared.start_ns) / interval;
	ck_assert_uint_eq(session->ticks.taken, taken);
	/* If one thread takes all times, those after the last may be missed already. */
	ck_assert_uint_ge(taken + session->ticks.missed, last);
	ck_assert(session->turns == 1 || taken + session->ticks.missed == last);
	ck_assert_uint_eq(session->ticks.wanted, taken + session->ticks.missed);
	ck_assert_uint_eq(session->shared.collector.lost[AGENT_LOSS_LATE], session->ticks.missed);
}

START_TEST(threads_take_turns)
{
	struct agent_session *session = open_session(&turns, 100 * US);

	start(session);
	wait_for_ticks(1000);
	stop(session);
	ck_assert_uint_eq(session->turns, AGENT_TICKER_THREADS_MOST);
	ck_assert_uint_eq(jvm.removed,
			  AGENT_TICKER_THREADS_MOST); /* none is a thread to be sampled */
	check_grid(session);
	for (unsigned i = 0; i < AGENT_TICKER_THREADS_MOST; i++) {
		const uint64_t number = (session->samplers[i].turn - session->shared.start_ns) /
					session->shared.options.interval_ns;

		ck_assert_uint_eq(number % AGENT_TICKER_THREADS_MOST,
				  (i + 1) % AGENT_TICKER_THREADS_MOST);
	}
}
END_TEST

/* Such a technique must not be called by two threads. */
START_TEST(one_thread_takes_all_times)
{
	struct agent_session *session = open_session(&alone, 100 * US);

	start(session);
	wait_for_ticks(300);
	stop(session);
	ck_assert_uint_eq(session->turns, 1);
	ck_assert_uint_eq(jvm.started, 1);
	check_grid(session);
}
END_TEST

START_TEST(long_intervals_need_one_thread)
{
	struct agent_session *session = open_session(&turns, MS);

	start(session);
	wait_for_ticks(20);
	stop(session);
	ck_assert_uint_eq(jvm.started, 1);
	check_grid(session);
}
END_TEST

/* Such a request takes long. */
START_TEST(waiting_threads_are_sampled_by_one_thread)
{
	struct agent_session *session = open_session(&turns, 100 * US);

	session->shared.options.waiting = true;
	start(session);
	wait_for_ticks(20);
	stop(session);
	ck_assert_uint_eq(jvm.started, 1);
}
END_TEST

START_TEST(fewer_threads_can_be_started)
{
	for (unsigned may = 1; may < AGENT_TICKER_THREADS_MOST; may++) {
		struct agent_session *session = open_session(&turns, 100 * US);

		jvm.may_start = may;
		start(session);
		wait_for_ticks(100);
		stop(session);
		ck_assert_uint_eq(session->turns, may);
		check_grid(session);
	}
}
END_TEST

START_TEST(no_thread_can_be_started)
{
	struct agent_session *session = open_session(&turns, 100 * US);

	jvm.may_start = 0;
	ck_assert_ptr_nonnull(agent_sampler_start(session, (JNIEnv *)&jni_functions));
	ck_assert_ptr_null(session->samplers[0].thread);
}
END_TEST

/* A stop may come while threads are being started. */
START_TEST(it_stops_at_any_moment)
{
	for (unsigned i = 0; i < 100; i++) {
		struct agent_session *session = open_session(&turns, 100 * US);

		start(session);
		pause_for(20 * US * i);
		stop(session);
		ck_assert_uint_eq(session->followers, 0);
	}
}
END_TEST

/* The leader does it between two ticks, and all go on. */
START_TEST(the_leader_does_what_is_asked)
{
	struct agent_session *session = open_session(&turns, 100 * US);

	start(session);
	for (int i = 1; i <= 20; i++) {
		const unsigned before = atomic_load(&count);

		agent_sampler_ask(session, AGENT_ASKED_DUMP);
		ck_assert_int_eq(jvm.dumps, i);
		wait_for_ticks(before + 2 * AGENT_TICKER_THREADS_MOST);
	}
	stop(session);
	check_grid(session);
}
END_TEST

START_TEST(it_ends_when_the_duration_is_over)
{
	struct agent_session *session = open_session(&turns, 100 * US);

	session->shared.options.duration_ns = 30 * MS;
	start(session);
	wait_for_end(session);
	stop(session);
	check_grid(session);
	ck_assert_uint_le(noted[atomic_load(&count) - 1], session->shared.start_ns + 30 * MS);
}
END_TEST

/* Only the newest of the times that have passed is taken. */
START_TEST(times_that_have_passed_are_missed)
{
	struct agent_session *session = open_session(&turns, 100 * US);

	session->shared.start_ns -= 10 * MS;
	start(session);
	wait_for_ticks(10);
	stop(session);
	check_grid(session);
	ck_assert_uint_ge(noted[0], session->shared.start_ns + 10 * MS);
	ck_assert_uint_ge(session->ticks.missed, 99);
}
END_TEST

START_TEST(no_time_after_the_end_is_taken)
{
	struct agent_session *session = open_session(&turns, 100 * US);

	session->shared.start_ns -= 10 * MS;
	session->shared.options.duration_ns = 5 * MS;
	start(session);
	wait_for_end(session);
	stop(session);
	check_grid(session);
	ck_assert_uint_eq(atomic_load(&count), 1);
	ck_assert_uint_eq(noted[0], session->shared.start_ns + 5 * MS);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("sampler");
	Suite *suite = suite_create("agent sampler");

	tcase_add_test(tests, threads_take_turns);
	tcase_add_test(tests, one_thread_takes_all_times);
	tcase_add_test(tests, long_intervals_need_one_thread);
	tcase_add_test(tests, waiting_threads_are_sampled_by_one_thread);
	tcase_add_test(tests, fewer_threads_can_be_started);
	tcase_add_test(tests, no_thread_can_be_started);
	tcase_add_test(tests, it_stops_at_any_moment);
	tcase_add_test(tests, the_leader_does_what_is_asked);
	tcase_add_test(tests, it_ends_when_the_duration_is_over);
	tcase_add_test(tests, times_that_have_passed_are_missed);
	tcase_add_test(tests, no_time_after_the_end_is_taken);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
