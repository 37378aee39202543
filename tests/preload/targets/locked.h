/* SPDX-License-Identifier: MIT
 *
 * Shared by the targets that have a library that allocates while it holds a lock. The first allocation of each
 * thread and of each child comes from such a function, and so does the last one.
 */
#ifndef LOCKED_H
#define LOCKED_H

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nest.h"

enum { THREADS = 4, ROUNDS = 4, CALLS = 200 };

static void use_functions(void);
static pthread_key_t key;

static void end(void *value)
{
	(void)value;
	use_functions();
}

static void *run(void *argument)
{
	use_functions();
	if (pthread_setspecific(key, &key) != 0)
		abort();
	for (int i = 0; i < CALLS; i++) {
		nest(i % 20, use_functions);
		nest(i % 15, allocate);
	}
	return argument;
}

static void run_child(void)
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		use_functions();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		abort();
}

static void run_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, NULL) != 0)
			abort();
	run_child();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	if (pthread_key_create(&key, end) != 0)
		return 1;
	for (int i = 0; i < ROUNDS; i++)
		run_threads();
	return 0;
}

#endif
