/* SPDX-License-Identifier: MIT
 *
 * Uses CPU time and does what a tool that looks at it may not expect. It writes a line when it has
 * begun. The first argument says what it does:
 *   map      maps the file that is the second argument as code
 *   shorten  loads the library that is the second argument. When it gets SIGUSR1, it cuts the file to
 *            as many bytes as the third argument says, and calls a function in it
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned sink;

static __attribute__((noinline)) void spin(void)
{
	for (;;)
		sink++;
}

static void map(const char *name)
{
	const int fd = open(name, O_RDONLY);

	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		exit(2);
	puts("mapped");
	fflush(stdout);
	spin();
}

static void cut(const char *name, long bytes)
{
	void *library = dlopen(name, RTLD_NOW);
	void *found = library != NULL ? dlsym(library, "plugin_run") : NULL;
	void (*run)(void (*)(void));
	sigset_t signals;
	int number;

	if (found == NULL)
		exit(2);
	memcpy(&run, &found, sizeof(run));
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	puts("loaded");
	fflush(stdout);
	sigwait(&signals, &number);
	if (truncate(name, bytes) != 0)
		exit(2);
	run(spin);
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "map") == 0)
		map(argv[2]);
	if (argc > 3 && strcmp(argv[1], "shorten") == 0)
		cut(argv[2], atol(argv[3]));
	return 2;
}
