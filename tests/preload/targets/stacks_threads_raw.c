/* SPDX-License-Identifier: MIT
 *
 * incstack heap traces: 2000
 * incstack heap does not say: could not be stopped
 *
 * Threads that end by the bare system call: no destructor of theirs runs. The recorder must
 * write what they have recorded, and give up what it keeps of them: it has mappings for each.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nest.h"

enum { THREADS = 200, FIRST_THREADS = 40 };

static void *work(void *argument)
{
	for (int level = 0; level < 10; level++)
		nest(level, allocate);
	syscall(SYS_exit, 0);
	return argument;
}

static void run_threads(int count)
{
	pthread_t thread;

	for (; count > 0; count--)
		if (pthread_create(&thread, NULL, work, NULL) != 0 ||
		    pthread_join(thread, NULL) != 0)
			_exit(1);
}

static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int count = 0;

	for (int c = fgetc(maps); c != EOF; c = fgetc(maps))
		count += c == '\n';
	fclose(maps);
	return count;
}

int main(void)
{
	int before;

	run_threads(FIRST_THREADS);
	before = mappings();
	run_threads(THREADS - FIRST_THREADS);
	if (mappings() > before + before / 2)
		fprintf(stderr, "%d mappings, then %d\n", before, mappings());
	return mappings() > before + before / 2;
}
