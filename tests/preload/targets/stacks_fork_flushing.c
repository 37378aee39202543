/* SPDX-License-Identifier: MIT
 *
 * A thread on a context of its own flushes all streams, one of which allocates when it is written,
 * while the main thread forks. libc holds the lock of its list of streams for both. So during
 * the fork the recorder must hold no lock that an allocation needs.
 *
 * incstack heap options: --follow-children
 * incstack heap varies
 * incstack heap leaves unchecked: 100000000
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { FORKS = 100, STACK_BYTES = 1 << 16 };

static volatile int stop;
static ucontext_t of_thread;
static ucontext_t context;
static char memory[STACK_BYTES];

static ssize_t put(void *cookie, const char *text, size_t bytes)
{
	(void)text;
	for (int i = 0; i < 100; i++) {
		void *volatile block = malloc(bytes);

		free(block);
	}
	(*(long *)cookie)++;
	return (ssize_t)bytes;
}

static void flush(void)
{
	static long puts_done;
	FILE *stream = fopencookie(&puts_done, "w", (cookie_io_functions_t){.write = put});

	while (!stop) {
		fputc('x', stream);
		fflush(NULL);
	}
	fclose(stream);
	swapcontext(&context, &of_thread);
}

static void *other(void *argument)
{
	getcontext(&context);
	context.uc_stack.ss_sp = memory;
	context.uc_stack.ss_size = sizeof(memory);
	makecontext(&context, flush, 0);
	swapcontext(&of_thread, &context);
	return argument;
}

int main(void)
{
	pthread_t thread;
	int failed = 0;

	if (pthread_create(&thread, NULL, other, NULL) != 0)
		return 1;
	for (int i = 0; i < FORKS; i++) {
		const pid_t child = fork();
		int status;

		if (child == 0) {
			free(malloc(100));
			_exit(0);
		}
		failed |= child < 0 || waitpid(child, &status, 0) != child || status != 0;
	}
	stop = 1;
	return pthread_join(thread, NULL) != 0 || failed;
}
