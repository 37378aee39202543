/* SPDX-License-Identifier: MIT
 *
 * Programs for attach_wall.sh that wait in functions with known names, and print what their own clocks say.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static __attribute__((noinline)) void work(double seconds)
{
	const double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		sink++;
}

static __attribute__((noinline)) void rest(double seconds)
{
	struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	if (nanosleep(&time, NULL) != 0)
		puts("interrupted");
	sink++;
}

static __attribute__((noinline)) void want_lock(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	sink++;
}

/* Waits that are much shorter than an interval. */
static __attribute__((noinline)) void nap(void)
{
	for (int i = 0; i < 1000; i++)
		rest(0.0002);
}

static int waiter_tid;

static void *waiter(void *unused)
{
	const double start = now(CLOCK_MONOTONIC);

	__atomic_store_n(&waiter_tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	want_lock();
	printf("lock %.0f\n", (now(CLOCK_MONOTONIC) - start) * 1000);
	return unused;
}

/* Returns when the waiter is in the system call that waits for the lock, however late it comes there. */
static void await_waiter(void)
{
	char path[64];
	long call = -1;

	while (__atomic_load_n(&waiter_tid, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", waiter_tid);
	while (call != SYS_futex) {
		FILE *file = fopen(path, "r");

		if (file == NULL || fscanf(file, "%ld", &call) != 1)
			call = -1; /* it runs */
		if (file != NULL)
			fclose(file);
	}
}

static long slept_us; /* by all sleepers */

static void *sleeper(void *unused)
{
	const double start = now(CLOCK_MONOTONIC);

	rest(2.0);
	__atomic_add_fetch(&slept_us, (long)((now(CLOCK_MONOTONIC) - start) * 1e6),
			   __ATOMIC_RELAXED);
	return unused;
}

static void join_all(pthread_t *threads, int count)
{
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void lock(void)
{
	pthread_t thread;

	pthread_mutex_lock(&mutex);
	pthread_create(&thread, NULL, waiter, NULL);
	await_waiter();
	rest(0.5);
	pthread_mutex_unlock(&mutex);
	join_all(&thread, 1);
}

static void crowd(void)
{
	enum { THREADS = 1000 };
	static pthread_t threads[THREADS];
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], &attributes, sleeper, NULL) != 0)
			exit(77);
	join_all(threads, THREADS);
	printf("crowd %ld\n", slept_us / 1000);
}

static void parts(void)
{
	const double start = now(CLOCK_MONOTONIC);
	double rested;

	rest(0.4);
	rested = now(CLOCK_MONOTONIC) - start;
	work(0.2);
	printf("rest %.0f\n", rested * 1000);
	printf("parts %.0f\n", (now(CLOCK_MONOTONIC) - start) * 1000);
}

static void naps(void)
{
	const double start = now(CLOCK_MONOTONIC);

	nap();
	printf("nap %.0f\n", (now(CLOCK_MONOTONIC) - start) * 1000);
}

enum { ROUNDS = 1000 };

static double waited; /* by the thread that measures its own waits */
static volatile bool is_done;

static __attribute__((noinline)) void want_held(void)
{
	const double start = now(CLOCK_MONOTONIC);

	pthread_mutex_lock(&mutex);
	waited += now(CLOCK_MONOTONIC) - start;
	pthread_mutex_unlock(&mutex);
}

static void *want_often(void *unused)
{
	while (!is_done) {
		want_held();
		rest(0.00005);
	}
	printf("held %.0f\n", waited * 1000);
	return unused;
}

/* Another thread wants a lock that is held for 300 us, again and again. */
static void held(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, want_often, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&mutex);
		rest(0.0003);
		pthread_mutex_unlock(&mutex);
		rest(0.0002);
	}
	is_done = true;
	join_all(&thread, 1);
}

static int requests[2];
static int answers[2];

static __attribute__((noinline)) bool take_byte(void)
{
	const double start = now(CLOCK_MONOTONIC);
	char byte;
	const bool has_one = read(requests[0], &byte, 1) == 1;

	waited += now(CLOCK_MONOTONIC) - start;
	return has_one;
}

static void *take_bytes(void *unused)
{
	while (take_byte())
		sink++;
	printf("pipe %.0f\n", waited * 1000);
	return unused;
}

/* Another thread reads what comes from time to time. */
static void from_pipe(void)
{
	pthread_t thread;

	if (pipe(requests) != 0)
		exit(1);
	pthread_create(&thread, NULL, take_bytes, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		rest(0.0003);
		if (write(requests[1], "", 1) != 1)
			exit(1);
	}
	close(requests[1]);
	join_all(&thread, 1);
}

static void *answer(void *unused)
{
	char byte;

	while (read(requests[0], &byte, 1) == 1 && write(answers[1], &byte, 1) == 1)
		sink++;
	return unused;
}

/* More thread switches than could be recorded. */
static void flood(void)
{
	const double start = now(CLOCK_MONOTONIC);
	pthread_t thread;
	char byte = 0;

	if (pipe(requests) != 0 || pipe(answers) != 0)
		exit(1);
	pthread_create(&thread, NULL, answer, NULL);
	for (int i = 0; i < 50000; i++)
		if (write(requests[1], &byte, 1) != 1 || read(answers[0], &byte, 1) != 1)
			exit(1);
	close(requests[1]);
	pthread_join(thread, NULL);
	printf("flood %.0f\n", (now(CLOCK_MONOTONIC) - start) * 1000);
}

static void on_signal(int number)
{
	printf("got %d\n", number);
	fflush(stdout);
	_exit(3);
}

static void signals(void)
{
	signal(SIGTERM, on_signal);
	puts("ready");
	fflush(stdout);
	rest(1000);
}

/* Waits until it is killed, for -p. */
static void wait_for_ever(void)
{
	pthread_t thread;

	pthread_mutex_lock(&mutex);
	pthread_create(&thread, NULL, waiter, NULL);
	await_waiter();
	puts("waits");
	fflush(stdout);
	rest(1000);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} programs[] = {{"parts", parts},        {"naps", naps},   {"lock", lock},
			{"crowd", crowd},        {"flood", flood}, {"signals", signals},
			{"wait", wait_for_ever}, {"held", held},   {"pipe", from_pipe}};

	for (size_t i = 0; argc == 2 && i < sizeof(programs) / sizeof(programs[0]); i++)
		if (strcmp(argv[1], programs[i].name) == 0) {
			programs[i].run();
			return 7;
		}
	if (argc == 3)
		execv(argv[0], (char *[]){argv[0], argv[2], NULL});
	return 2;
}
