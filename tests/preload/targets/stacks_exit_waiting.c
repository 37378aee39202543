/* SPDX-License-Identifier: MIT
 *
 * incstack heap varies
 * incstack heap returns: 0
 *
 * Threads wait for ever in calls that return EINTR after any signal handler. No signal comes in this
 * program, so they must not go on, neither when another program cannot be executed nor when the
 * process ends.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sleeps.h"

enum { WAYS = 7 };

static int tids[WAYS];

static void allocate(void)
{
	void *volatile block = malloc(40);

	free(block);
}

static void wait_for_ever(int way)
{
	const struct timespec long_time = {.tv_sec = 1000};
	struct epoll_event event;
	sigset_t none, signals;

	sigemptyset(&none);
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	switch (way) {
	case 0:
		pause();
		break;
	case 1:
		nanosleep(&long_time, NULL);
		break;
	case 2:
		poll(NULL, 0, -1);
		break;
	case 3:
		select(0, NULL, NULL, NULL, NULL);
		break;
	case 4:
		epoll_wait(epoll_create1(0), &event, 1, -1);
		break;
	case 5:
		sigsuspend(&none);
		break;
	default:
		sigtimedwait(&signals, NULL, &long_time);
	}
}

static void *run(void *argument)
{
	const int way = *(const int *)argument;

	for (int i = 0; i < 100; i++)
		allocate();
	__atomic_store_n(&tids[way], (int)gettid(), __ATOMIC_SEQ_CST);
	wait_for_ever(way);
	_exit(1);
}

static int waits(int way)
{
	const int tid = __atomic_load_n(&tids[way], __ATOMIC_SEQ_CST);

	return tid != 0 && sleeps(tid);
}

static void wait_until_all_wait(void)
{
	for (int way = 0; way < WAYS;) {
		usleep(1000);
		way = waits(way) ? way + 1 : 0;
	}
}

int main(void)
{
	static int ways[WAYS];
	char *arguments[] = {"nothing", NULL};
	pthread_t thread;

	for (int i = 0; i < WAYS; i++) {
		ways[i] = i;
		if (pthread_create(&thread, NULL, run, &ways[i]) != 0)
			return 2;
	}
	for (int i = 0; i < 3; i++) {
		wait_until_all_wait();
		allocate();
		execv("/nothing/there", arguments);
	}
	wait_until_all_wait();
	exit(0);
}
