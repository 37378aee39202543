/* SPDX-License-Identifier: MIT
 *
 * What tests see of the coordinator: the steps of its protocol, at which other threads can be made to act,
 * whether it is in use, and operations on stopped threads, which the sampler runs.
 */
#ifndef INCSTACK_SRC_SAFEPOINT_STEP_H
#define INCSTACK_SRC_SAFEPOINT_STEP_H

#include <stdbool.h>

#include <incstack/safepoint.h>

/* The steps of the protocol, with the names used in tests/model/ticket.pml. */
enum incstack__step {
	INCSTACK__STEP_HOLD = 0,  /* before a waiting thread is claimed */
	INCSTACK__STEP_ARM,       /* before a bit is set */
	INCSTACK__STEP_REARM,     /* bits set; before checking that tickets are left */
	INCSTACK__STEP_CLAIM,     /* before a thread, or its holder, clears its bit to draw */
	INCSTACK__STEP_DRAW,      /* before a ticket is drawn */
	INCSTACK__STEP_BEGIN,     /* ticket won; before its time is taken */
	INCSTACK__STEP_OPERATION, /* before the operation */
	INCSTACK__STEP_DISARM,    /* before one thread's bit is cleared by another */
	INCSTACK__STEP_DROP,      /* before a reference is given up */
	INCSTACK__STEP_FINISH,    /* last reference gone; before the callback */
	INCSTACK__STEP_CLOSE,     /* before the deadline closes the tickets */
	INCSTACK__STEP_UNHOLD,    /* before a waiting thread is released */
	INCSTACK__STEP_GATE,      /* a waiting thread was released; before its gate opens */
	INCSTACK__STEP_ENTER,     /* before a thread begins to wait */
	INCSTACK__STEP_LEAVE,     /* before a waiting thread runs again */
	INCSTACK__STEP_GONE,      /* before a thread marks itself as detached */
	INCSTACK__STEP_STOP,      /* before a thread is told to stop */
	INCSTACK__STEP_RESUME,    /* before a thread is told to continue */
	INCSTACK__STEP_COUNT      /* the number of steps */
};

/* A hook. It is called in slow paths only. */
typedef void incstack__step_hook(void *context, enum incstack__step step);

/* Sets the hook that is called before each step; null: none. Call it before a thread is attached. */
void incstack__safepoint_hook(struct incstack_safepoint *safepoint, incstack__step_hook *hook,
			      void *context);

/* Runs the operation for up to n of the stopped threads, chosen at random, between stop and
 * resume. ticket->request is null and on_behalf 1. It chooses among the threads that ran
 * when they were stopped; with INCSTACK_REQUEST_WAITING also among waiting threads, split
 * as in incstack_request_start. Returns how many operations it ran.
 * Errors: EINVAL, also without a full safepoint; ETHREAD: another thread stopped; EFORKED. */
int incstack__safepoint_run_operation(struct incstack_safepoint *safepoint, uint32_t n,
				      uint32_t flags, incstack_operation *operation,
				      void *argument);

/* Whether a thread is attached, or a request is open or was not released. */
bool incstack__safepoint_in_use(struct incstack_safepoint *safepoint);

#endif
