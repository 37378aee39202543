/* SPDX-License-Identifier: MIT
 *
 * Tests a requester that still has to open the gate of a waiting thread, when this thread has passed already,
 * has detached, and has attached again with the same record.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "run_suite.h"
#include "safepoint/safepoint_step.h"

static struct incstack_safepoint *safepoint;
static struct incstack_thread *first, *second;
static pthread_t waiter;
static _Atomic(bool) waits, held, gate_opened;
/* Relaxed: the thread sanitizer must not take the test's own signs for an order between the gate and the new
 * attachment. */
static _Atomic(bool) attached_again;
static bool interrupted;
static int errors[3] = {1, 1, 1};

static void interrupt(int number)
{
	(void)number;
}

static void *wait_and_attach_again(void *unused)
{
	(void)unused;
	incstack_safepoint_attach(safepoint, &first);
	incstack_thread_wait_begin(first);
	atomic_store(&waits, true);
	while (!atomic_load(&held))
		usleep(100);
	incstack_thread_wait_end(first);
	incstack_thread_detach(first);
	incstack_safepoint_attach(safepoint, &second);
	atomic_store_explicit(&attached_again, true, memory_order_relaxed);
	while (!atomic_load(&gate_opened))
		usleep(100);
	/* The second attachment has lost nothing. */
	errors[0] = incstack_thread_wait_begin(second);
	errors[1] = incstack_thread_wait_end(second);
	errors[2] = incstack_thread_detach(second);
	return NULL;
}

static void hold_until_it_sleeps(const struct incstack_ticket *ticket, void *unused)
{
	(void)unused;
	atomic_store(&held, true);
	while (!(atomic_load_explicit(&ticket->thread->word, memory_order_relaxed) &
		 INCSTACK_WORD_SLEEP))
		usleep(100);
}

static void request(uint32_t flags)
{
	struct incstack_request *request;
	struct incstack_request_options options = {
		.size = sizeof(options), .n = 1, .flags = flags, .operation = hold_until_it_sleeps};
	ck_assert_int_eq(incstack_request_start(safepoint, &options, &request), 0);
	incstack_request_release(request);
}

/* A request that has ended lists the thread until its slot is used again. A sleep at the gate may end early; here
 * a signal ends it. */
static void let_the_thread_pass(void *unused, enum incstack__step step)
{
	(void)unused;
	if (step != INCSTACK__STEP_GATE || interrupted)
		return;
	interrupted = true;
	request(0);
	while (!atomic_load_explicit(&attached_again, memory_order_relaxed)) {
		pthread_kill(waiter, SIGUSR1);
		usleep(100);
	}
}

START_TEST(a_record_is_used_again_before_its_gate_opens)
{
	struct sigaction action = {.sa_handler = interrupt};
	sigaction(SIGUSR1, &action, NULL);
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	incstack__safepoint_hook(safepoint, let_the_thread_pass, NULL);
	ck_assert_int_eq(pthread_create(&waiter, NULL, wait_and_attach_again, NULL), 0);
	while (!atomic_load(&waits))
		usleep(100);
	/* Resume serves the claim on behalf of the thread, and lets it pass. */
	ck_assert_int_eq(incstack_safepoint_stop(safepoint, NULL, 0, NULL), 0);
	request(INCSTACK_REQUEST_WAITING);
	ck_assert_int_eq(incstack_safepoint_resume(safepoint, NULL), 0);
	ck_assert(interrupted);
	atomic_store(&gate_opened, true);
	ck_assert_int_eq(pthread_join(waiter, NULL), 0);
	ck_assert_ptr_eq(first, second);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(errors[i], 0);
	incstack_safepoint_destroy(safepoint);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("safepoint gate");
	TCase *tests = tcase_create("gate");
	tcase_add_test(tests, a_record_is_used_again_before_its_gate_opens);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
