/* SPDX-License-Identifier: MIT
 *
 * Tables of calls with the error that each must return.
 */
#ifndef ANSWERS_H
#define ANSWERS_H

#include <check.h>
#include <incstack/incstack.h>
#include <stddef.h>

/* Each line of a table is evaluated in order; a wrong answer names its line. */
struct answer {
	const char *call;
	int got, want;
};
#define SAYS(want, call) \
	{ \
#call, call, want \
	}
#define CHECK_ANSWERS(...) \
	do { \
		const struct answer answers[] = {__VA_ARGS__}; \
		for (size_t i_ = 0; i_ < sizeof(answers) / sizeof(answers[0]); i_++) { \
			ck_assert_msg(answers[i_].got == answers[i_].want, "%s: %d, not %d", \
				      answers[i_].call, answers[i_].got, answers[i_].want); \
			ck_assert_str_ne(incstack_error_text(answers[i_].got), "unknown error"); \
		} \
	} while (0)

#endif
