/* SPDX-License-Identifier: MIT
 *
 * Uses CPU time in functions that the tests of incstack cpu know. The first argument says how:
 *   spin     in outer, which calls inner
 *   masked   in a thread that blocks all signals
 *   created  in the main thread, after the program has made its first thread
 *   sigprof  with a profiling timer of its own, whose signals it counts
 *   users    with threads while all of them change their user, for which libc sends signals
 *   killed   until it kills itself
 *   exec     and becomes another program, which is this one with the other arguments
 *   fork     in a child
 *   quiet    in a thread that calls nothing that a recorder could interpose, until it has written to
 *            the file that the second argument names eight times
 *   crowd    in 60 threads that call nothing that a recorder could interpose
 *   named    in two threads that name themselves red, and in one that gets the name late just before
 *            the program ends; each allocates, too
 *   waits    not at all: it waits fifty times for nothing, and prints how often that was interrupted
 *   fiber    on a stack of 6 KiB; a store below it is a fault
 *   untimed  after it has deleted all timers of the process, also those that it did not make
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { BURN_MS = 300, QUIET_MS = 100, GROWTHS = 8, CROWD = 60, CROWD_MS = 1500, LEVELS = 200 };

static volatile unsigned sink;
static volatile sig_atomic_t own_ticks;
static int grown;
static long burn_ms = BURN_MS;

static long now_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static long used_ms(void)
{
	return now_ms(CLOCK_THREAD_CPUTIME_ID);
}

__attribute__((noinline)) static void inner(void)
{
	for (unsigned i = 0; i < 100000; i++)
		sink = sink * 3 + i;
}

__attribute__((noinline)) static void outer(void)
{
	for (const long start = used_ms(); used_ms() - start < burn_ms;)
		inner();
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void *masked(void *unused)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	outer();
	return unused;
}

__attribute__((noinline)) static void *nothing(void *unused)
{
	return unused;
}

__attribute__((noinline)) static void *quiet(void *file)
{
	struct stat status;
	off_t size = 0;

	burn_ms = QUIET_MS;
	for (int i = 0; i < 200 && grown < GROWTHS; i++) {
		outer();
		grown += stat(file, &status) == 0 && status.st_size != size;
		size = status.st_size;
	}
	return file;
}

static int in_thread(void *(*function)(void *), void *argument)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, function, argument) != 0 ||
	       pthread_join(thread, NULL) != 0;
}

__attribute__((noinline)) static int created(void)
{
	if (in_thread(nothing, NULL) != 0)
		return 1;
	outer();
	return 0;
}

static void count(int number)
{
	(void)number;
	own_ticks = own_ticks + 1;
}

static int sigprof(void)
{
	const struct itimerval often = {{0, 10000}, {0, 10000}};
	const struct sigaction action = {.sa_handler = count};

	if (sigaction(SIGPROF, &action, NULL) != 0 || setitimer(ITIMER_PROF, &often, NULL) != 0)
		return 1;
	outer();
	return own_ticks == 0;
}

static int waits(void)
{
	int interrupted = 0;

	for (int i = 0; i < 50; i++)
		interrupted += poll(NULL, 0, 20) != 0 && errno == EINTR;
	printf("%d interrupted\n", interrupted);
	return 0;
}

static int users(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, masked, NULL) != 0)
			return 1;
	for (int i = 0; i < 1000; i++)
		if (setresuid((uid_t)-1, geteuid(), (uid_t)-1) != 0)
			return 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* Each sample of it finds new frames. */
__attribute__((noinline)) static void descend(int levels)
{
	if (levels > 0)
		descend(levels - 1);
	else
		inner();
	__asm__ volatile("" ::: "memory");
}

/* Waits until all threads have begun, and then burns time. */
static void *crowded(void *unused)
{
	static int begun;

	__atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < CROWD)
		;
	for (const long start = now_ms(CLOCK_MONOTONIC);
	     now_ms(CLOCK_MONOTONIC) - start < CROWD_MS;)
		descend(LEVELS);
	return unused;
}

static int crowd(void)
{
	pthread_t threads[CROWD];

	for (int i = 0; i < CROWD; i++)
		if (pthread_create(&threads[i], NULL, crowded, NULL) != 0)
			return 1;
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

__attribute__((noinline)) static void allocate(void)
{
	void *volatile block = malloc(1000);

	free(block);
}

__attribute__((noinline)) static void *red(void *unused)
{
	pthread_setname_np(pthread_self(), "red");
	allocate();
	outer();
	return unused;
}

__attribute__((noinline)) static void *waiting(void *ready)
{
	allocate();
	outer();
	__atomic_store_n((int *)ready, 1, __ATOMIC_RELEASE);
	while (pause() != 0)
		;
	return ready;
}

__attribute__((noinline)) static int named(void)
{
	static int ready;
	pthread_t late;

	if (in_thread(red, NULL) != 0 || in_thread(red, NULL) != 0 ||
	    pthread_create(&late, NULL, waiting, &ready) != 0)
		return 1;
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		usleep(1000);
	outer();
	return pthread_setname_np(late, "late") != 0;
}

static int fiber(void)
{
	enum { STACK_BYTES = 6 << 10, PAGE = 4096 };
	ucontext_t outside;
	ucontext_t inside;
	char *memory = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED ||
	    mprotect(memory + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE) != 0 ||
	    getcontext(&inside) != 0)
		return 1;
	inside.uc_stack.ss_sp = memory + PAGE;
	inside.uc_stack.ss_size = STACK_BYTES;
	inside.uc_link = &outside;
	makecontext(&inside, outer, 0);
	used_ms(); /* when the dynamic linker binds its calls, it needs half of that stack */
	return swapcontext(&outside, &inside) != 0;
}

static int in_child(void)
{
	int status;
	const pid_t child = fork();

	if (child == 0) {
		outer();
		_exit(0);
	}
	return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

/* The kernel needs the time, while the return address is in a register. */
static int many_vforks(void)
{
	while (used_ms() < 200) {
		const pid_t child = vfork();

		if (child == 0)
			_exit(0);
		if (child < 0 || waitpid(child, NULL, 0) != child)
			return 1;
	}
	return 0;
}

static void delete_timers(void)
{
	for (long id = 0; id < 16; id++)
		syscall(SYS_timer_delete, id);
}

int main(int arguments, char **argv)
{
	const char *how = arguments > 1 ? argv[1] : "spin";

	if (strcmp(how, "masked") == 0)
		return in_thread(masked, NULL);
	if (strcmp(how, "created") == 0)
		return created();
	if (strcmp(how, "waits") == 0)
		return waits();
	if (strcmp(how, "sigprof") == 0)
		return sigprof();
	if (strcmp(how, "users") == 0)
		return users();
	if (strcmp(how, "fork") == 0)
		return in_child();
	if (strcmp(how, "vfork") == 0)
		return many_vforks();
	if (strcmp(how, "quiet") == 0)
		return in_thread(quiet, argv[2]) || grown < GROWTHS;
	if (strcmp(how, "crowd") == 0)
		return crowd();
	if (strcmp(how, "named") == 0)
		return named();
	if (strcmp(how, "fiber") == 0)
		return fiber();
	if (strcmp(how, "untimed") == 0)
		delete_timers();
	outer();
	if (strcmp(how, "killed") == 0)
		raise(SIGKILL);
	if (strcmp(how, "exec") == 0)
		execv("/proc/self/exe", (char *[]){argv[0], argv[2], NULL});
	return 0;
}
