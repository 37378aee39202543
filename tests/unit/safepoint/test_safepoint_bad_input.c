/* SPDX-License-Identifier: MIT
 *
 * Tests arguments of the functions for safepoints that are invalid: each function returns the error that its
 * header names.
 */
#include <incstack/safepoint.h>

#include "answers.h"
#include "run_suite.h"
#include "safepoint/safepoint_step.h"

static void do_nothing(const struct incstack_ticket *ticket, void *argument)
{
	(void)ticket;
	(void)argument;
}

START_TEST(safepoints_are_checked)
{
	struct incstack_safepoint *points;
	struct incstack_thread *thread;
	struct incstack_request *request, *other;
	struct incstack_request_options wanted = {.size = sizeof(wanted)};
	const struct incstack_request_options good = {
		.size = sizeof(good), .n = 1, .operation = do_nothing};
	struct incstack_request_options bad[] = {good, good, good};
	struct incstack_request_result small = {.size = sizeof(small) - 1};
	struct incstack_safepoint_options odd = {.size = sizeof(odd) - 1};
	struct incstack_safepoint *others;
	bad[0].size--;
	bad[1].n = UINT32_MAX;
	bad[2].flags = UINT32_MAX;
	ck_assert_int_eq(incstack_safepoint_create(NULL, &points), 0);
	ck_assert_int_eq(incstack_safepoint_create(NULL, &others), 0);
	ck_assert_int_eq(incstack_safepoint_attach(others, &thread), 0);
	ck_assert_int_eq(incstack_request_start(others, &good, &request), 0);
	CHECK_ANSWERS(SAYS(INCSTACK_EINVAL, incstack_safepoint_create(NULL, NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_create(&odd, &points)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_attach(NULL, &thread)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_attach(points, NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_thread_detach(NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_stop(NULL, NULL, 0, NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_stop(points, thread, 0, NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_resume(NULL, NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_safepoint_resume(points, thread)),
		      SAYS(INCSTACK_EINVAL,
			   incstack__safepoint_run_operation(NULL, 1, 0, do_nothing, NULL)),
		      SAYS(INCSTACK_EINVAL, incstack_request_start(points, NULL, &request)),
		      SAYS(INCSTACK_EINVAL, incstack_request_start(points, &wanted, &request)),
		      SAYS(INCSTACK_EINVAL, incstack_request_start(NULL, &wanted, &request)),
		      SAYS(INCSTACK_EINVAL, incstack_request_start(points, &bad[0], &other)),
		      SAYS(INCSTACK_EINVAL, incstack_request_start(points, &bad[1], &other)),
		      SAYS(INCSTACK_EINVAL, incstack_request_start(points, &bad[2], &other)),
		      SAYS(INCSTACK_EINVAL, incstack_request_wait(request, 1, &small)),
		      SAYS(INCSTACK_EINVAL, incstack_request_wait(NULL, 1, NULL)));
	incstack_safepoint_destroy(NULL);
	incstack_request_release(NULL);
	ck_assert_int_eq(incstack_safepoint_stop(points, NULL, 0, NULL), 0);
	CHECK_ANSWERS(
		SAYS(INCSTACK_EINVAL,
		     incstack__safepoint_run_operation(points, 0, 0, do_nothing, NULL)),
		SAYS(INCSTACK_EINVAL, incstack__safepoint_run_operation(points, 1, 0, NULL, NULL)),
		SAYS(INCSTACK_EINVAL,
		     incstack__safepoint_run_operation(points, 1, UINT32_MAX, do_nothing, NULL)));
	ck_assert_int_eq(incstack_safepoint_resume(points, NULL), 0);
	incstack_safepoint_destroy(points);
	incstack_thread_poll(thread);
	incstack_request_release(request);
	ck_assert_int_eq(incstack_thread_detach(thread), 0);
	incstack_safepoint_destroy(others);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bad input for safepoints");
	TCase *tests = tcase_create("is refused");

	tcase_add_test(tests, safepoints_are_checked);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
