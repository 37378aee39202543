/* SPDX-License-Identifier: MIT
 *
 * The thread that retrieves, with a JVM that can only start threads: it retrieves again and again, sooner if there is
 * much to retrieve, and ends when it is told to.
 */
#include <string.h>
#include <time.h>

#include "run_suite.h"
#include "clock.h"
#include "jvm_with_threads.h"
#include "retriever.h"

static struct agent_threads threads;
static struct agent_retriever retriever;
static atomic_uint retrieves;
static atomic_bool slow;

static void pause_briefly(void)
{
	const struct timespec time = {.tv_nsec = 100000};

	nanosleep(&time, NULL);
}

static void wait_for_retrieves(unsigned wanted)
{
	while (atomic_load(&retrieves) < wanted)
		pause_briefly();
}

static void retrieve(void *context, JNIEnv *jni)
{
	ck_assert_ptr_eq(context, &retrieves);
	ck_assert_ptr_nonnull(jni);
	agent_retriever_begun(&retriever);
	atomic_fetch_add(&retrieves, 1);
	while (atomic_load(&slow))
		pause_briefly();
}

static void set_up(void)
{
	memset(&jvm, 0, sizeof(jvm));
	jvm.may_start = 1;
	agent_retriever_init(&retriever, &thread_jvmti, &threads);
}

static void start(void)
{
	agent_retriever_start(&retriever, &thread_jni, retrieve, &retrieves);
}

static bool stop_within(uint64_t ns)
{
	return agent_retriever_stop(&retriever, agent_now() + ns);
}

static void stop(void)
{
	ck_assert(stop_within(100 * AGENT_NS_PER_S));
	agent_retriever_close(&retriever, &thread_jni);
}

START_TEST(it_retrieves_again_and_again)
{
	unsigned after;

	start();
	wait_for_retrieves(3);
	stop();
	after = atomic_load(&retrieves);
	ck_assert_uint_eq(jvm.started, 1);
	ck_assert_uint_eq(jvm.removed, 1); /* it is no thread to be sampled */
	for (int i = 0; i < 1500; i++)
		pause_briefly();
	ck_assert_uint_eq(atomic_load(&retrieves), after);
}
END_TEST

/* Without a request, so many retrieves take longer than a test may take. */
START_TEST(it_hurries)
{
	start();
	for (unsigned i = 1; i <= 4000; i++) {
		const unsigned before = atomic_load(&retrieves);

		agent_retriever_hurry(&retriever);
		wait_for_retrieves(before + 1);
	}
	stop();
}
END_TEST

/* The request is served by whoever retrieves. */
START_TEST(a_request_is_served_once)
{
	agent_retriever_hurry(&retriever);
	agent_retriever_hurry(&retriever);
	ck_assert(atomic_load(&retriever.hurry));
	agent_retriever_begun(&retriever);
	ck_assert(!atomic_load(&retriever.hurry));
}
END_TEST

START_TEST(a_retrieve_that_takes_long_is_waited_for)
{
	start();
	atomic_store(&slow, true);
	wait_for_retrieves(1);
	ck_assert(!stop_within(0));
	atomic_store(&slow, false);
	stop();
}
END_TEST

START_TEST(with_a_full_heap_it_retrieves_later)
{
	atomic_store(&jvm.full, true);
	start();
	for (int i = 0; i < 3000; i++)
		pause_briefly();
	ck_assert_uint_eq(atomic_load(&retrieves), 0);
	atomic_store(&jvm.full, false);
	wait_for_retrieves(1);
	stop();
}
END_TEST

START_TEST(without_its_thread_there_is_nothing_to_stop)
{
	jvm.may_start = 0;
	start();
	ck_assert_ptr_null(retriever.thread);
	ck_assert(stop_within(0));
	agent_retriever_close(&retriever, &thread_jni);
}
END_TEST

START_TEST(sessions_follow_one_another)
{
	jvm.may_start = 5;
	for (unsigned i = 1; i <= 5; i++) {
		start();
		wait_for_retrieves(i);
		stop();
	}
	ck_assert_uint_eq(jvm.started, 5);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("retriever");
	Suite *suite = suite_create("agent retriever");

	tcase_add_checked_fixture(tests, set_up, NULL);
	tcase_add_test(tests, it_retrieves_again_and_again);
	tcase_add_test(tests, it_hurries);
	tcase_add_test(tests, a_request_is_served_once);
	tcase_add_test(tests, a_retrieve_that_takes_long_is_waited_for);
	tcase_add_test(tests, with_a_full_heap_it_retrieves_later);
	tcase_add_test(tests, without_its_thread_there_is_nothing_to_stop);
	tcase_add_test(tests, sessions_follow_one_another);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
