/* SPDX-License-Identifier: MIT
 *
 * Measures a call in which the thread may wait. Only the stub of --wall has these functions.
 */
#ifndef INCSTACK_WAITS_H
#define INCSTACK_WAITS_H

#include <errno.h>
#include <time.h>

#include "interpose/stub.h"
#include "tracefile/states.h"

struct incstack__waiting {
	const struct incstack__recorder *recorder; /* null: nothing is measured */
	struct incstack__wait wait, outer;
};

static inline void incstack__waiting_begin(struct incstack__waiting *waiting,
					   struct incstack__caller caller, uint32_t state)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	waiting->recorder = recorder && recorder->on_wait ? recorder : NULL;
	waiting->wait = (struct incstack__wait){.slot = caller.slot, .state = state};
	if (waiting->recorder)
		waiting->recorder->on_wait(&waiting->wait, &waiting->outer);
}

/* Ends the wait. Returns whether the call must be made again: it has failed, and a signal of the recorder is the reason.
 * A signal of the program that came, too, is as if it had come just before the call. */
static inline bool incstack__waiting_end(struct incstack__waiting *waiting, bool was_interrupted)
{
	return waiting->recorder && waiting->recorder->on_waited(&waiting->wait, &waiting->outer) &&
	       was_interrupted;
}

/* Makes a call, and makes it again if the recorder has interrupted it. `before` is done before each attempt but the
 * first, with `waiting`. */
#define INCSTACK__WAITING(state, result, call, was_interrupted, before) \
	struct incstack__waiting waiting; \
	INCSTACK__CALLER(caller); \
\
	incstack__waiting_begin(&waiting, caller, state); \
	while (result = (call), incstack__waiting_end(&waiting, was_interrupted)) { \
		before; \
		incstack__waiting_begin(&waiting, caller, state); \
	}

/* An interposed function whose failure is -1 with EINTR, and which has no timeout. */
#define INCSTACK__WAITS(type, name, state, parameters, arguments) \
	INCSTACK__REAL(name) \
	INCSTACK__INTERPOSED type name parameters \
	{ \
		type result; \
		INCSTACK__WAITING(state, result, name##_next() arguments, \
				  result == (type)-1 && errno == EINTR, ) \
\
		return result; \
	}

/* The same for a function that returns no EINTR. */
#define INCSTACK__WAITS_UNINTERRUPTED(type, name, state, parameters, arguments) \
	INCSTACK__REAL(name) \
	INCSTACK__INTERPOSED type name parameters \
	{ \
		type result; \
		INCSTACK__WAITING(state, result, name##_next() arguments, false, ) \
\
		return result; \
	}

/* The same for a function that has the parameter `timeout`, a struct timespec. */
#define INCSTACK__WAITS_TIME(name, state, parameters, arguments) \
	INCSTACK__REAL(name) \
	INCSTACK__INTERPOSED int name parameters \
	{ \
		struct timespec left = timeout ? *timeout : (struct timespec){0}; \
		const struct timespec *const all = timeout; \
		uint64_t first = 0; \
		int result; \
		INCSTACK__WAITING( \
			state, result, name##_next() arguments, result == -1 && errno == EINTR, { \
				incstack__waiting_shorten(&left, all, &first, waiting.wait.begin); \
				timeout = timeout ? &left : NULL; \
			}) \
\
		return result; \
	}

/* time.c */
/* Returns what is left of a timeout that began so long ago, in ns; at least 0. `begin` and the clock are those of the
 * recorder's stamps. */
int64_t incstack__waiting_left(int64_t timeout_ns, uint64_t begin);
/* Sets what is left of a timeout, if there is one. *first is when the first attempt began, or 0; `begin` when the last
 * one did. */
void incstack__waiting_shorten(struct timespec *left, const struct timespec *all, uint64_t *first,
			       uint64_t begin);

#endif
