/* SPDX-License-Identifier: MIT
 *
 * Writes what every thread has recorded, before the process ends or becomes
 * another: each other thread is held in the handler of a directed signal while
 * its traces are completed. Who does not answer in time keeps its traces; the
 * reader counts them as lost by the thread's counter of started samples.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "recorder.h"

enum { FREE = 0, HELD, RELEASED, WAIT_STEPS = 200 };

static void nap(void)
{
	const struct timespec pause = {.tv_nsec = 50000};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* A thread inside the recorder does not hold still: it is asked again. */
static void hold(int number, siginfo_t *info, void *context)
{
	struct incstack__record *record;
	const int saved = errno;

	(void)number;
	(void)info;
	(void)context;
	if (incstack__record_busy)
		return;
	incstack__record_busy++;
	record = incstack__record_self();
	if (record != NULL) {
		__atomic_store_n(&record->held, HELD, __ATOMIC_RELEASE);
		while (__atomic_load_n(&record->held, __ATOMIC_ACQUIRE) == HELD)
			nap();
		incstack_stack_own(record->stack);
		__atomic_store_n(&record->held, FREE, __ATOMIC_RELEASE);
	}
	incstack__record_busy--;
	errno = saved;
}

/* The highest real-time signal that the target leaves alone; 0: there is none. */
static int pick_signal(struct sigaction *before)
{
	struct sigaction action = {.sa_sigaction = hold, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigfillset(&action.sa_mask);
	for (int number = SIGRTMAX; number >= SIGRTMIN; number--) {
		if (sigaction(number, NULL, before) != 0 || before->sa_handler != SIG_DFL)
			continue;
		return sigaction(number, &action, NULL) == 0 ? number : 0;
	}
	return 0;
}

/* Asked again every 20 steps, should it have been inside the recorder. */
static int held_in_time(struct incstack__record *record, int number)
{
	for (int step = 0; step < WAIT_STEPS; step++) {
		if (step % 20 == 0 &&
		    syscall(SYS_tgkill, incstack__recording.pid, record->tid, number) != 0)
			return 0;
		if (__atomic_load_n(&record->held, __ATOMIC_ACQUIRE) == HELD)
			return 1;
		nap();
	}
	return 0;
}

static void flush_other(struct incstack__record *record, int number, int last)
{
	if (!held_in_time(record, number))
		return;
	if (incstack_stack_own(record->stack) == 0)
		incstack__record_flush(record);
	__atomic_store_n(&record->held, RELEASED, __ATOMIC_RELEASE);
	/* Until it has taken its stack back, a second request would be answered late. */
	for (int step = 0; step < WAIT_STEPS && !last; step++, nap())
		if (__atomic_load_n(&record->held, __ATOMIC_ACQUIRE) == FREE)
			return;
}

static void flush_late(uint32_t flags)
{
	struct incstack__record *late = &incstack__recording.late;

	if (incstack_stack_own(late->stack) != 0)
		return;
	incstack__record_flush(late);
	incstack__record_tally(late, flags);
}

void incstack__record_flush_all(uint32_t flags)
{
	struct incstack__recording *r = &incstack__recording;
	struct incstack__record *self = incstack__record_self();
	const int last = (flags & INCSTACK__TRACE_TALLY_PROCESS) != 0;
	struct sigaction before;
	int number;

	if (self != NULL)
		incstack__record_flush(self);
	pthread_mutex_lock(&r->lock);
	number = r->threads != NULL && (r->threads != self || self->next != NULL)
			 ? pick_signal(&before)
			 : 0;
	for (struct incstack__record *i = r->threads; i != NULL && number != 0; i = i->next)
		if (i != self)
			flush_other(i, number, last);
	flush_late(flags);
	pthread_mutex_unlock(&r->lock);
}

/* A child of vfork runs in its parent's memory: the records are not its own. */
static int not_ours(void)
{
	return incstack__record_busy || !incstack__recording.on ||
	       getpid() != incstack__recording.pid;
}

void incstack__record_exec(void)
{
	struct incstack__quiet before;

	if (not_ours())
		return;
	incstack__record_busy++;
	incstack__record_quiet(&before);
	incstack__record_flush_all(INCSTACK__TRACE_TALLY_EXEC);
	incstack__record_loud(&before);
	incstack__record_busy--;
}

void incstack__record_exit(void)
{
	struct incstack__quiet before;

	if (not_ours())
		return;
	incstack__record_busy++;
	incstack__record_quiet(&before);
	__atomic_store_n(&incstack__recording.on, 0, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&incstack__recording.changes, 1, __ATOMIC_SEQ_CST);
	incstack__record_flush_all(INCSTACK__TRACE_TALLY_PROCESS);
	incstack__record_loud(&before);
	incstack__record_busy--;
}
