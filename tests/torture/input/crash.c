/* SPDX-License-Identifier: MIT
 *
 * Allocates, and ends by a wild store in a thread, by abort, or by a raw exit_group.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *how;
static void *volatile kept;
static int *volatile wild;

static void leak(int n)
{
	kept = malloc((size_t)n % 100 + 1);
}

static void *end(void *count)
{
	for (long i = 0; i < (long)count; i++)
		leak((int)i);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "exit") == 0)
		syscall(SYS_exit_group, 7);
	*wild = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	how = argc > 2 ? argv[2] : "segv";
	for (int i = 0; i < atoi(argv[1]); i++)
		leak(i);
	printf("about to end\n");
	fflush(stdout);
	pthread_create(&thread, NULL, end, (void *)atol(argv[1]));
	pthread_join(thread, NULL);
	return 0;
}
