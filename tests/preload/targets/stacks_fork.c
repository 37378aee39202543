/* SPDX-License-Identifier: MIT
 *
 * Children of every kind return through frames that were patched before: fork (one
 * goes on allocating), vfork with exec, posix_spawn, system, fork of a thread.
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static pid_t child;

static void allocate(void)
{
	void *volatile block = malloc(32);

	free(block);
}

/* A child has the mask of its parent. */
static void do_fork(void)
{
	sigset_t mask;

	child = fork();
	if (child != 0)
		return;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (int number = 1; number < NSIG; number++)
		if (sigismember(&mask, number) == 1)
			_exit(7);
}

/* The child leaves through the frame that called vfork: exec, or _exit on failure. */
static void do_vfork(void)
{
	child = vfork();
	if (child == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(9);
	}
}

static void do_spawn(void)
{
	char name[] = "true";
	char *const argv[] = {name, NULL};

	if (posix_spawn(&child, "/bin/true", NULL, NULL, argv, environ) != 0)
		exit(1);
}

static void do_system(void)
{
	child = -1;
	if (system("true") != 0)
		exit(2);
}

/* Not a loop: each level allocates before and after. */
static int nest(int level, void (*action)(void));
static int (*volatile again)(int, void (*)(void)) = nest;

static int nest(int level, void (*action)(void))
{
	int depth = 0;

	allocate();
	if (level == 0)
		action();
	else
		depth = again(level - 1, action) + 1;
	allocate();
	return depth;
}

static void reap(void)
{
	int status;

	if (child < 0)
		return;
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		exit(3);
}

static void check(int level, void (*action)(void))
{
	child = -2;
	if (nest(level, action) != level)
		_exit(4);
	if (child == 0)
		exit(0); /* of fork: through the whole of exit */
	reap();
	if (nest(level / 2, allocate) != level / 2)
		exit(5);
}

static void *in_thread(void *argument)
{
	for (int i = 0; i < 5; i++)
		check(10 + i, do_fork);
	return argument;
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < 5; i++) {
		check(3 * i, do_fork);
		check(3 * i, do_vfork);
		check(3 * i, do_spawn);
		check(3 * i, do_system);
	}
	if (pthread_create(&thread, NULL, in_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return 6;
	return 0;
}
