/* SPDX-License-Identifier: MIT
 *
 * Interposes the functions that make threads, so that a recorder that needs it sees a thread before
 * the thread's own function runs. That function is called by a jump, so that the stub has no frame
 * in the thread.
 */
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

#include "stub.h"

INCSTACK__REAL(pthread_create)
INCSTACK__REAL(thrd_create)

struct start {
	void *(*pthread)(void *);
	thrd_start_t thrd;
	void *argument;
};

static struct start take(void *argument)
{
	const struct start start = *(struct start *)argument;
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	free(argument);
	if (recorder && recorder->on_thread_begin)
		recorder->on_thread_begin();
	return start;
}

static void *run_pthread(void *argument)
{
	const struct start start = take(argument);

	return start.pthread(start.argument);
}

static int run_thrd(void *argument)
{
	const struct start start = take(argument);

	return start.thrd(start.argument);
}

/* Null: the thread is to be made without us. */
static struct start *prepare(struct start start)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();
	struct start *mine = NULL;

	if (recorder && recorder->on_thread_begin)
		mine = malloc(sizeof(*mine));
	if (mine)
		*mine = start;
	return mine;
}

INCSTACK__INTERPOSED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
					void *(*function)(void *), void *argument)
{
	struct start *mine = prepare((struct start){.pthread = function, .argument = argument});
	int error;

	if (!mine)
		return pthread_create_next()(thread, attributes, function, argument);
	error = pthread_create_next()(thread, attributes, run_pthread, mine);
	if (error != 0)
		free(mine);
	return error;
}

INCSTACK__INTERPOSED int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
	struct start *mine = prepare((struct start){.thrd = function, .argument = argument});
	int error;

	if (!mine)
		return thrd_create_next()(thread, function, argument);
	error = thrd_create_next()(thread, run_thrd, mine);
	if (error != thrd_success)
		free(mine);
	return error;
}
