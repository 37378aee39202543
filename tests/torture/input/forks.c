/* SPDX-License-Identifier: MIT
 *
 * Forks while other threads allocate; children that allocate, fork, start threads, and end by
 * exit, _exit and a signal.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int stop;
static void *volatile kept;

__attribute__((noinline)) static void deep(int n)
{
	void *block = malloc((size_t)n + 1);

	kept = block;
	if (n > 0)
		deep(n - 1);
	free(block);
}

static void *others(void *unused)
{
	(void)unused;
	while (!stop)
		deep(10);
	return NULL;
}

static void *once(void *unused)
{
	deep(30);
	return unused;
}

static void be_child(int number)
{
	pthread_t thread;

	deep(number % 30);
	pthread_create(&thread, NULL, once, NULL);
	pthread_join(thread, NULL);
	if (number % 4 == 0 && fork() == 0) {
		deep(5);
		exit(1);
	}
	while (wait(NULL) > 0) {
	}
	if (number % 3 == 0)
		raise(SIGKILL);
	if (number % 3 == 1)
		_exit(number % 100);
	exit(number % 100);
}

int main(int argc, char **argv)
{
	const int rounds = atoi(argv[argc - 1]) * 3;
	pthread_t threads[2];
	long sum = 0;

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, others, NULL);
	for (int i = 0; i < rounds; i++) {
		int status;
		const pid_t child = fork();

		if (child == 0)
			be_child(i);
		waitpid(child, &status, 0);
		sum += WIFSIGNALED(status) ? 1000 : WEXITSTATUS(status);
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", sum);
	return 0;
}
