/* SPDX-License-Identifier: MIT
 *
 * What the main functions of the unit tests share: running one suite.
 */
#ifndef RUN_SUITE_H
#define RUN_SUITE_H

#include <check.h>

/* Runs the suite and frees it. The result is for main: 0 if every test passed. */
static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

#endif
