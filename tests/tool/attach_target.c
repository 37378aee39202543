/* SPDX-License-Identifier: MIT
 *
 * Uses CPU time in functions that the tests of incstack cpu -p know. It writes a line when it has
 * begun. The first argument says how:
 *   spin     in outer, which calls inner and twin in turns, until it is killed
 *   deep     so, below 100 calls of descend, with 100 bytes of stack each or as many as the second
 *            argument says
 *   strict   so, in seccomp's strict mode
 *   handler  so, in the handler of a signal
 *   aside    so, in the handler of a signal on a stack of its own
 * The others wait until there is a file "go", and end some time later:
 *   threads  in short threads, one after the other; then it writes the milliseconds that it has used
 *   calls    between system calls that a signal would interrupt; with 3 if that has happened
 *   reload   in libraries that it loads and unloads, which are the other arguments
 *   exec     in before, then it becomes this program with the other arguments
 *   forks    in outer, while children are in child
 *   ends     in outer
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FOR_EVER = 1000000000 };

static volatile unsigned sink;

/* gcc saves rbp, and its rule for the end of the function says that rbp is still saved. */
#if defined(__OPTIMIZE__) && !defined(__clang__)
#define USE_RBP() __asm__ volatile("" ::: "rbp")
#else
#define USE_RBP() (void)0
#endif

/* So short that many samples are in its prologue and its epilogue. */
static __attribute__((noinline)) void leaf(unsigned value)
{
	sink = sink * 3 + value;
	USE_RBP();
}

static __attribute__((noinline)) void inner(void)
{
	for (unsigned i = 0; i < 5000; i++)
		leaf(i);
}

static __attribute__((noinline)) void twig(unsigned value)
{
	sink = sink * 5 + value;
}

/* Its frame lies where that of inner lies, with the same size. */
static __attribute__((noinline)) void twin(void)
{
	for (unsigned i = 0; i < 5000; i++)
		twig(i);
}

static __attribute__((noinline)) void outer(int times)
{
	for (int i = 0; i < times; i++) {
		inner();
		twin();
	}
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void *worker(void *unused)
{
	outer(500);
	return unused;
}

static __attribute__((noinline)) int make_threads(void)
{
	pthread_t thread;

	for (int i = 0; i < 60; i++)
		if (pthread_create(&thread, NULL, worker, NULL) != 0 ||
		    pthread_join(thread, NULL) != 0)
			return 1;
	printf("%ld\n", (long)(clock() / (CLOCKS_PER_SEC / 1000)));
	return 0;
}

/* No signal comes, so none of these calls may report one. */
static __attribute__((noinline)) int make_calls(void)
{
	const struct timespec shortly = {.tv_nsec = 20000};
	const int poll = epoll_create1(0);
	struct epoll_event event;

	for (int i = 0; i < 300; i++) {
		if (epoll_wait(poll, &event, 1, 1) < 0 || nanosleep(&shortly, NULL) != 0 ||
		    epoll_wait(poll, &event, 1, 0) < 0)
			return errno == EINTR ? 3 : 1;
		outer(20);
	}
	return 0;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static __attribute__((noinline)) void descend(int levels, size_t bytes)
{
	volatile char *room = __builtin_alloca(bytes);

	room[0] = 1;
	if (levels > 0)
		descend(levels - 1, bytes);
	else
		outer(FOR_EVER);
	room[0] = 2;
}

#ifdef IS_STATIC
#define reload(names) 1
#else
static __attribute__((noinline)) int reload(char **names)
{
	for (int i = 0; i < 60; i++) {
		void *library = dlopen(names[i % 2], RTLD_NOW);
		void (*function)(void (*)(int)) = NULL;
		void *symbol = library != NULL ? dlsym(library, "plugin_run") : NULL;

		if (symbol == NULL)
			return 1;
		memcpy(&function, &symbol, sizeof(function));
		function(outer);
		dlclose(library);
	}
	return 0;
}
#endif

static __attribute__((noinline)) void before(void)
{
	outer(20000);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void child(void)
{
	outer(2000);
	_exit(0);
}

static __attribute__((noinline)) int make_children(void)
{
	int status = 0;

	for (int i = 0; i < 10 && status == 0; i++) {
		const pid_t pid = fork();

		if (pid == 0)
			child();
		outer(2000);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 1;
	}
	return status;
}

static __attribute__((noinline)) void on_signal(int number)
{
	outer(FOR_EVER);
	(void)number;
}

static __attribute__((noinline)) int in_handler(int flags)
{
	static char room[1 << 16];
	const stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	return sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0 ||
	       raise(SIGUSR1) != 0;
}

static int is(const char *text, const char *name)
{
	return strcmp(text, name) == 0;
}

/* What ends by itself waits until the test is ready. */
static __attribute__((noinline)) int run_once(const char *how, char **arguments)
{
	while (access("go", F_OK) != 0)
		usleep(1000);
	if (is(how, "threads"))
		return make_threads();
	if (is(how, "calls"))
		return make_calls();
	if (is(how, "reload"))
		return reload(arguments);
	if (is(how, "forks"))
		return make_children();
	before();
	return is(how, "exec") ? execv("/proc/self/exe", arguments - 1) : 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "spin";

	printf("ready\n");
	fflush(stdout);
	if (is(how, "strict"))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	if (is(how, "spin") || is(how, "strict"))
		outer(FOR_EVER);
	if (is(how, "deep"))
		descend(100, argc > 2 ? (size_t)atoi(argv[2]) : 100);
	if (is(how, "handler") || is(how, "aside"))
		return in_handler(is(how, "aside") ? SA_ONSTACK : 0);
	return run_once(how, argv + 2);
}
