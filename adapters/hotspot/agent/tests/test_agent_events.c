/* SPDX-License-Identifier: MIT
 *
 * The events of threads and classes, with a JVM that only switches them: they go to the threads and the technique while
 * they are on, and to nobody before and afterwards.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "run_suite.h"
#include "events.h"

static struct {
	jvmtiEventMode modes[JVMTI_MAX_EVENT_TYPE_VAL + 1];
	atomic_int added, removed, ended, prepared;
	atomic_bool hold; /* an event goes on while this is set */
} seen;

static jvmtiError JNICALL set_mode(jvmtiEnv *env, jvmtiEventMode mode, jvmtiEvent event,
				   jthread thread, ...)
{
	(void)env;
	ck_assert_ptr_null(thread);
	seen.modes[event] = mode;
	return JVMTI_ERROR_NONE;
}

static const struct jvmtiInterface_1_ jvmti_table = {.SetEventNotificationMode = set_mode};
static jvmtiEnv jvmti = &jvmti_table;
static JNIEnv jni;

static struct agent_threads threads;
static struct agent_events events;
static jthread thread = (jthread)&threads;

/* ---- where the events go ---- */

void agent_threads_add(struct agent_threads *its, JNIEnv *env, jthread started)
{
	(void)env;
	ck_assert_ptr_eq(its, &threads);
	ck_assert_ptr_eq(started, thread);
	atomic_fetch_add(&seen.added, 1);
	while (atomic_load(&seen.hold))
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

void agent_threads_remove(struct agent_threads *its, JNIEnv *env, jthread ended)
{
	(void)env;
	ck_assert_ptr_eq(its, &threads);
	ck_assert_ptr_eq(ended, thread);
	atomic_fetch_add(&seen.removed, 1);
}

static void thread_ends(struct agent_technique *technique, JNIEnv *env, jthread ended)
{
	(void)technique, (void)env;
	ck_assert_ptr_eq(ended, thread);
	ck_assert_int_eq(seen.removed, seen.added); /* nobody can choose it any more */
	atomic_fetch_add(&seen.ended, 1);
}

/* A JVM prepares a class within another event, too. */
static void class_prepared(struct agent_technique *technique, JNIEnv *env, jclass class)
{
	(void)technique;
	if (!atomic_fetch_add(&seen.prepared, 1))
		agent_events_class_prepared(&events, env, class);
}

static const struct agent_technique_kind with_classes = {.class_prepared = class_prepared};
static const struct agent_technique_kind with_ends = {.thread_ends = thread_ends};
static struct agent_technique technique;

static void set_up(void)
{
	memset(&seen, 0, sizeof(seen));
	agent_events_init(&events, &jvmti);
}

static void start(const struct agent_technique_kind *kind)
{
	technique.kind = kind;
	agent_events_start(&events, &threads, &technique);
}

static void send_all(void)
{
	agent_events_thread_starts(&events, &jni, thread);
	agent_events_thread_ends(&events, &jni, thread);
	agent_events_class_prepared(&events, &jni, thread);
}

START_TEST(a_technique_gets_what_it_asks_for)
{
	start(&with_classes);
	ck_assert_int_eq(seen.modes[JVMTI_EVENT_THREAD_START], JVMTI_ENABLE);
	ck_assert_int_eq(seen.modes[JVMTI_EVENT_THREAD_END], JVMTI_ENABLE);
	ck_assert_int_eq(seen.modes[JVMTI_EVENT_CLASS_PREPARE], JVMTI_ENABLE);
	send_all();
	ck_assert(seen.added == 1 && seen.removed == 1 && seen.ended == 0 && seen.prepared == 2);
	agent_events_stop(&events);
	ck_assert_int_eq(seen.modes[JVMTI_EVENT_CLASS_PREPARE], JVMTI_DISABLE);
	start(&with_ends);
	ck_assert_int_eq(seen.modes[JVMTI_EVENT_CLASS_PREPARE], JVMTI_DISABLE);
	send_all();
	ck_assert(seen.added == 2 && seen.removed == 2 && seen.ended == 1 && seen.prepared == 2);
	agent_events_stop(&events);
}
END_TEST

/* The JVM may call once more after an event is switched off. */
START_TEST(nobody_gets_events_that_are_off)
{
	send_all();
	start(&with_ends);
	agent_events_stop(&events);
	ck_assert_int_eq(seen.modes[JVMTI_EVENT_THREAD_START], JVMTI_DISABLE);
	ck_assert_int_eq(seen.modes[JVMTI_EVENT_THREAD_END], JVMTI_DISABLE);
	send_all();
	ck_assert(!seen.added && !seen.removed && !seen.ended && !seen.prepared);
}
END_TEST

static atomic_bool stopped;

static void *stop(void *unused)
{
	(void)unused;
	agent_events_stop(&events);
	atomic_store(&stopped, true);
	return NULL;
}

static void *start_thread(void *unused)
{
	(void)unused;
	agent_events_thread_starts(&events, &jni, thread);
	return NULL;
}

/* What a session frees afterwards is in use until then. */
START_TEST(stop_waits_for_an_event_in_progress)
{
	pthread_t starting, stopping;

	start(&with_ends);
	atomic_store(&seen.hold, true);
	ck_assert_int_eq(pthread_create(&starting, NULL, start_thread, NULL), 0);
	while (!atomic_load(&seen.added))
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	ck_assert_int_eq(pthread_create(&stopping, NULL, stop, NULL), 0);
	nanosleep(&(struct timespec){.tv_nsec = 50000000},
		  NULL); /* a stop that does not wait is over */
	ck_assert(!atomic_load(&stopped));
	atomic_store(&seen.hold, false);
	pthread_join(starting, NULL);
	pthread_join(stopping, NULL);
	ck_assert(atomic_load(&stopped));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("events");
	Suite *suite = suite_create("agent events");

	tcase_add_checked_fixture(tests, set_up, NULL);
	tcase_add_test(tests, a_technique_gets_what_it_asks_for);
	tcase_add_test(tests, nobody_gets_events_that_are_off);
	tcase_add_test(tests, stop_waits_for_an_event_in_progress);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
