/* SPDX-License-Identifier: MIT
 *
 * waits_target NAME: programs for waits.sh. "calls" makes each call that waits again and again, for a short time, while
 * other threads make the timers of the profile run out, and says which calls failed with EINTR, and how long all took.
 * "idle" ends while threads still wait. "signals" has a signal handler that interrupts waits: those fail with EINTR.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 30, SHORT_NS = 1000000 };

static const struct timespec short_time = {0, SHORT_NS};
static int ends[2];
static int epoll;
static int semaphores;
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static volatile unsigned long sink;

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* CPU time before each call, so that a timer runs out soon, perhaps in the call. */
static void work(void)
{
	const double end = now(CLOCK_THREAD_CPUTIME_ID) + 0.0015;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		sink++;
}

static struct timespec soon(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_nsec += SHORT_NS;
	if (time.tv_nsec >= 1000000000) {
		time.tv_nsec -= 1000000000;
		time.tv_sec++;
	}
	return time;
}

/* ---- each returns whether it failed with EINTR ------------------------------------------- */

static bool in_nanosleep(void)
{
	return nanosleep(&short_time, NULL) != 0 && errno == EINTR;
}

static bool in_clock_nanosleep(void)
{
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, NULL) == EINTR;
}

static bool in_usleep(void)
{
	return usleep(SHORT_NS / 1000) != 0 && errno == EINTR;
}

static bool in_poll(void)
{
	struct pollfd one = {ends[0], POLLIN, 0};

	return poll(&one, 1, 1) < 0 && errno == EINTR;
}

static bool in_ppoll(void)
{
	struct pollfd one = {ends[0], POLLIN, 0};

	return ppoll(&one, 1, &short_time, NULL) < 0 && errno == EINTR;
}

static bool in_select(void)
{
	struct timeval time = {0, SHORT_NS / 1000};

	return select(0, NULL, NULL, NULL, &time) < 0 && errno == EINTR;
}

static bool in_pselect(void)
{
	return pselect(0, NULL, NULL, NULL, &short_time, NULL) < 0 && errno == EINTR;
}

static bool in_epoll_wait(void)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, 1) < 0 && errno == EINTR;
}

static bool in_semtimedop(void)
{
	struct sembuf one = {0, -1, 0};

	return semtimedop(semaphores, &one, 1, &short_time) < 0 && errno == EINTR;
}

static bool in_recv(void)
{
	char byte;

	return recv(ends[0], &byte, 1, 0) < 0 && errno == EINTR;
}

static bool in_sem_timedwait(void)
{
	const struct timespec until = soon();

	return sem_timedwait(&semaphore, &until) != 0 && errno == EINTR;
}

static bool in_cond_timedwait(void)
{
	const struct timespec until = soon();
	int error;

	pthread_mutex_lock(&mutex);
	error = pthread_cond_timedwait(&condition, &mutex, &until);
	pthread_mutex_unlock(&mutex);
	return error == EINTR;
}

static const struct {
	const char *name;
	bool (*call)(void);
} calls[] = {
	{"nanosleep", in_nanosleep},
	{"clock_nanosleep", in_clock_nanosleep},
	{"usleep", in_usleep},
	{"poll", in_poll},
	{"ppoll", in_ppoll},
	{"select", in_select},
	{"pselect", in_pselect},
	{"epoll_wait", in_epoll_wait},
	{"semtimedop", in_semtimedop},
	{"recv", in_recv},
	{"sem_timedwait", in_sem_timedwait},
	{"cond_timedwait", in_cond_timedwait},
};

static void prepare(void)
{
	const struct timeval time = {0, SHORT_NS / 1000};

	semaphores = semget(IPC_PRIVATE, 1, 0600);
	epoll = epoll_create1(0);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || epoll < 0 || semaphores < 0)
		exit(77);
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
	sem_init(&semaphore, 0, 0);
}

static __attribute__((noinline)) double make_calls(size_t which)
{
	double waited = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double start;

		work();
		start = now(CLOCK_MONOTONIC);
		if (calls[which].call())
			printf("interrupted %s\n", calls[which].name);
		waited += now(CLOCK_MONOTONIC) - start;
	}
	return waited;
}

/* Nobody knows what is left of the timeout of recv, so with many ticks it would never end. */
static void run_calls(bool with_recv)
{
	double waited = 0;

	prepare();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (with_recv || calls[i].call != in_recv)
			waited += make_calls(i);
	semctl(semaphores, 0, IPC_RMID);
	printf("calls %.0f\n", waited * 1000);
}

/* ---- a signal of the program ------------------------------------------------------------- */

static volatile sig_atomic_t signals;

static void on_alarm(int number)
{
	(void)number;
	signals++;
	nanosleep(&short_time, NULL); /* a wait inside a wait */
}

/* A timer of the program ends a sleep, of which the rest is right. */
static void run_signals(void)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	const struct itimerval timer = {{0, 20000}, {0, 20000}};
	struct timespec left = {1000, 0};
	int interrupted = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	while (interrupted < 10)
		interrupted += nanosleep(&left, &left) != 0 && errno == EINTR;
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	printf("signals %d left %d\n", interrupted == signals || interrupted + 1 == signals,
	       left.tv_sec < 1000 && left.tv_sec > 0);
}

/* ---- the end, while threads wait --------------------------------------------------------- */

enum { THREADS = 20 };

static int tids[THREADS];

static __attribute__((noinline)) void wait_for_ever(void)
{
	char byte;

	if (read(ends[0], &byte, 1) != 1)
		puts("interrupted read");
	sink++;
}

static void *idle(void *tid)
{
	__atomic_store_n((int *)tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	wait_for_ever();
	return NULL;
}

/* Returns when the thread is in read, however late it comes there. */
static void await(const int *tid)
{
	char path[64];
	long call = -1;

	while (__atomic_load_n(tid, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", *tid);
	while (call != SYS_read) {
		FILE *file = fopen(path, "r");

		if (file == NULL || fscanf(file, "%ld", &call) != 1)
			call = -1; /* it runs */
		if (file != NULL)
			fclose(file);
	}
}

static void run_idle(void)
{
	pthread_t thread;
	double start;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		exit(77);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, idle, &tids[i]) != 0)
			exit(77);
	for (int i = 0; i < THREADS; i++)
		await(&tids[i]);
	start = now(CLOCK_MONOTONIC);
	nanosleep(&(struct timespec){0, 500000000}, NULL);
	printf("idle %.0f\n", (now(CLOCK_MONOTONIC) - start) * 1000 * THREADS);
	fflush(stdout);
	exit(7);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "calls") == 0)
		run_calls(true);
	else if (strcmp(name, "ticks") == 0)
		run_calls(false);
	else if (strcmp(name, "signals") == 0)
		run_signals();
	else if (strcmp(name, "idle") == 0)
		run_idle();
	else
		return 2;
	return 7;
}
