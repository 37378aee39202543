/* SPDX-License-Identifier: MIT
 *
 * A stack of the recorder for each thread whose own stack may be too small.
 */
#ifndef INCSTACK_RECORDER_OWN_STACK_H
#define INCSTACK_RECORDER_OWN_STACK_H

#include <signal.h>
#include <stddef.h>

struct incstack__record;

int incstack__own_stack_make(struct incstack__record *record);
void incstack__own_stack_release(struct incstack__record *record);
/* Calls the function on the record's own stack. The caller has blocked signals and is not on that
 * stack. */
void incstack__own_stack_run(const struct incstack__record *record, void (*function)(void *),
			     void *argument);
/* The stack on which the caller runs, and how many bytes it has left. */
struct incstack__place {
	enum {
		INCSTACK__ON_THREAD_STACK,
		INCSTACK__ON_SIGNAL_STACK,
		INCSTACK__ON_OTHER_STACK, /* for example a fiber's; its size is not known */
	} where;
	size_t left;
};
enum { INCSTACK__STACK_TO_SERVE = 8 << 10 };
struct incstack__place incstack__place_of_caller(const struct incstack__record *record,
						 const stack_t *of_signals);

#endif
