/* SPDX-License-Identifier: MIT
 *
 * longjmp over many frames, from a signal handler too, nested setjmp, and vfork, on four threads.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static __thread jmp_buf out;
static __thread sigjmp_buf from_handler;
static void *volatile kept;

__attribute__((noinline)) static int deep(int n, jmp_buf *to)
{
	void *block = malloc((size_t)n + 1);

	kept = block;
	free(block);
	if (n == 0)
		longjmp(*to, 1);
	return deep(n - 1, to) + 1;
}

static void on_signal(int number)
{
	(void)number;
	siglongjmp(from_handler, 1);
}

static int nested(int n)
{
	jmp_buf inner;

	if (setjmp(inner) == 0)
		deep(n, &inner);
	if (setjmp(out) == 0)
		deep(n * 2, &out);
	if (sigsetjmp(from_handler, 1) == 0) {
		free(malloc(10));
		raise(SIGUSR1);
	}
	return 1;
}

static void *work(void *rounds)
{
	long sum = 0;

	for (long i = 0; i < (long)rounds; i++)
		sum += nested((int)(i % 30));
	return (void *)sum;
}

int main(int argc, char **argv)
{
	const long rounds = atol(argv[argc - 1]) * 30;
	pthread_t threads[4];
	long sum = 0;

	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)rounds);
	for (int i = 0; i < 4; i++) {
		void *part;

		pthread_join(threads[i], &part);
		sum += (long)part;
	}
	for (int i = 0; i < 10; i++) {
		int status;
		pid_t child = vfork();

		if (child == 0)
			_exit(7);
		waitpid(child, &status, 0);
		sum += WEXITSTATUS(status);
	}
	printf("%ld\n", sum);
	return 0;
}
