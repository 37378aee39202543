/* SPDX-License-Identifier: MIT
 *
 * Tests that a thread cannot detach another one, nor end the full safepoint of another one, and that an
 * attachment can be handed over.
 */
#include <pthread.h>

#include "run_suite.h"
#include "safepoint/safepoint_step.h"

static struct incstack_safepoint *safepoint;
static struct incstack_thread *self;

struct answers {
	int detach, stop, resume, run;
};

static void never(const struct incstack_ticket *ticket, void *argument)
{
	(void)ticket;
	(void)argument;
	ck_abort_msg("an operation ran");
}

static void *meddle(void *argument)
{
	struct answers *answers = argument;
	answers->detach = incstack_thread_detach(self);
	answers->resume = incstack_safepoint_resume(safepoint, NULL);
	answers->run = incstack__safepoint_run_operation(safepoint, 1, 0, never, NULL);
	answers->stop = incstack_safepoint_stop(safepoint, self, 1, NULL);
	return NULL;
}

static void *adopt(void *argument)
{
	*(int *)argument = incstack_thread_adopt(self);
	return NULL;
}

static struct answers meddling(void)
{
	struct answers answers = {0};
	pthread_t other;
	ck_assert_int_eq(pthread_create(&other, NULL, meddle, &answers), 0);
	ck_assert_int_eq(pthread_join(other, NULL), 0);
	return answers;
}

START_TEST(only_the_owner_may)
{
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	ck_assert_int_eq(incstack_safepoint_attach(safepoint, &self), 0);
	struct answers answers = meddling();
	ck_assert_int_eq(answers.detach, INCSTACK_ETHREAD);
	ck_assert_int_eq(answers.stop, INCSTACK_ETHREAD);
	ck_assert_int_eq(answers.resume, INCSTACK_EINVAL);
	ck_assert_int_eq(answers.run, INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_safepoint_stop(safepoint, self, 0, NULL), 0);
	answers = meddling();
	ck_assert_int_eq(answers.resume, INCSTACK_ETHREAD);
	ck_assert_int_eq(answers.run, INCSTACK_ETHREAD);
	ck_assert_int_eq(incstack_safepoint_resume(safepoint, self), 0);
	ck_assert_int_eq(incstack_safepoint_resume(safepoint, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_thread_detach(self), 0);
	incstack_safepoint_destroy(safepoint);
}
END_TEST

/* A runtime moves a state from one thread of the system to another one. */
START_TEST(an_attachment_is_handed_over)
{
	pthread_t other;
	int error = 1;
	ck_assert_int_eq(incstack_thread_adopt(NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	ck_assert_int_eq(incstack_safepoint_attach(safepoint, &self), 0);
	ck_assert_int_eq(pthread_create(&other, NULL, adopt, &error), 0);
	ck_assert_int_eq(pthread_join(other, NULL), 0);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(incstack_thread_detach(self), INCSTACK_ETHREAD);
	ck_assert_int_eq(incstack_thread_adopt(self), 0);
	ck_assert_int_eq(incstack_thread_detach(self), 0);
	incstack_safepoint_destroy(safepoint);
}
END_TEST

static void adopt_inside(const struct incstack_ticket *ticket, void *argument)
{
	*(int *)argument = incstack_thread_adopt(ticket->thread);
}

START_TEST(an_operation_is_not_handed_over)
{
	int error = 0;
	const struct incstack_request_options options = {
		.size = sizeof(options), .n = 1, .operation = adopt_inside, .argument = &error};
	struct incstack_request *request;
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	ck_assert_int_eq(incstack_safepoint_attach(safepoint, &self), 0);
	ck_assert_int_eq(incstack_request_start(safepoint, &options, &request), 0);
	incstack_thread_poll(self);
	ck_assert_int_eq(error, INCSTACK_EBUSY);
	incstack_request_release(request);
	ck_assert_int_eq(incstack_thread_detach(self), 0);
	incstack_safepoint_destroy(safepoint);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("owners of safepoints");
	TCase *tc = tcase_create("all");
	tcase_add_test(tc, only_the_owner_may);
	tcase_add_test(tc, an_attachment_is_handed_over);
	tcase_add_test(tc, an_operation_is_not_handed_over);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
