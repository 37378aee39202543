/* SPDX-License-Identifier: MIT
 *
 * The timers of a CPU profile. Each thread has a timer that runs on the thread's CPU clock and
 * signals only that thread. The signal is 33, with which libc changes the user IDs of all threads,
 * because no thread blocks it and no program uses it (D51, D59). Our handler stands in front of
 * libc's and passes on what did not come from our timers. libc installs its handler at the first
 * pthread_create, after which ours goes in front again.
 *
 * The kernel deletes timers at an exec, and a child of fork has none.
 */
#include <stdatomic.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "recorder/system/kernel.h"
#include "recorder/system/signal.h"
#include "recorder/code/code.h"
#include "recorder/cpu/ticks.h"
#include "recorder/events/events.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

enum { SIGNAL = 33 };

/* The handler that was installed before ours. */
static incstack__signal_handler *_Atomic behind;
static void (*on_tick)(uint64_t ticks, const void *ucontext);
static const char mark; /* its address tells our timers' signals from others */

static bool is_tick(const siginfo_t *info)
{
	return info->si_code == SI_TIMER && info->si_value.sival_ptr == &mark;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
	incstack__signal_handler *handler = atomic_load_explicit(&behind, memory_order_relaxed);

	if ((uintptr_t)handler > (uintptr_t)SIG_IGN)
		handler(number, info, context);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	const int saved = errno;

	if (is_tick(info))
		on_tick((uint64_t)info->si_overrun + 1, context);
	else
		pass_on(number, info, context);
	errno = saved;
}

int incstack__timer_signal(void (*tick)(uint64_t ticks, const void *ucontext))
{
	struct incstack__signal_action ours = {
		.handler = on_signal,
		.flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | INCSTACK__SIGNAL_RESTORER,
		.restorer = incstack__signal_restorer(),
		.mask = INCSTACK__SIGNAL_OTHERS,
	};
	struct incstack__signal_action there;

	on_tick = tick;
	if (!ours.restorer || incstack__signal_action(SIGNAL, NULL, &there) != 0)
		return -1;
	if (there.handler == on_signal)
		return 0;
	atomic_store_explicit(&behind, there.handler, memory_order_relaxed);
	return incstack__signal_action(SIGNAL, &ours, NULL);
}

/* Reads the thread's CPU clock by the number that the kernel gives it. Any thread of the process
 * may read this clock. */
uint64_t incstack__timer_clock(const struct incstack__record *record)
{
	enum { PER_THREAD_SCHED = 6 };
	struct timespec used;

	if (incstack__clock((~record->tid << 3) | PER_THREAD_SCHED, &used) != 0)
		return 0;
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

void incstack__timer_set(const struct incstack__record *record, uint64_t interval)
{
	const struct timespec period = {.tv_sec = (time_t)(interval / 1000000000),
					.tv_nsec = (long)(interval % 1000000000)};
	const struct itimerspec times = {period, period};

	if (record->timer > 0)
		incstack__kernel_call(SYS_timer_settime, record->timer - 1, 0, &times, NULL);
}

/* Timers count towards the user's limit of pending signals. */
void incstack__timer_start(struct incstack__record *record)
{
	struct sigevent event;
	int id;

	memset(&event, 0, sizeof(event));
	event.sigev_signo = SIGNAL;
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_value.sival_ptr = (void *)(uintptr_t)&mark;
	event._sigev_un._tid = record->tid;
	if (incstack__kernel_call(SYS_timer_create,
				  incstack__recording.elapsed ? CLOCK_MONOTONIC
							      : CLOCK_THREAD_CPUTIME_ID,
				  &event, &id) != 0) {
		incstack__record_note(INCSTACK__NOTE_NO_TIMER);
		return;
	}
	record->timer = id + 1;
	record->cpu_start = incstack__timer_clock(record);
	incstack__timer_set(record, incstack__recording.interval);
}

void incstack__timer_let_run(const struct incstack__record *record)
{
	if (incstack__recording.elapsed)
		incstack__timer_set(record, incstack__recording.interval);
}

void incstack__timer_stop(struct incstack__record *record)
{
	if (record->timer > 0)
		incstack__kernel_call(SYS_timer_delete, record->timer - 1);
	record->cpu_used = incstack__timer_cpu_ns(record);
	record->timer = 0;
}

/* A timer of CPU time cannot tick again so soon, because the kernel checks it only once in a jiffy.
 * libc uses this signal number as well, so the pending signal may be libc's. */
bool incstack__timer_is_due(void)
{
	uint64_t pending = 0;

	return incstack__recording.elapsed &&
	       incstack__kernel_call(SYS_rt_sigpending, &pending, sizeof(pending)) == 0 &&
	       (pending & INCSTACK__SIGNAL_BIT(SIGNAL)) != 0;
}

/* The clock of a thread ends with the thread. */
uint64_t incstack__timer_cpu_ns(const struct incstack__record *record)
{
	const uint64_t now = record->timer > 0 ? incstack__timer_clock(record) : 0;

	if (now > record->cpu_start)
		return now - record->cpu_start;
	return record->cpu_used != 0 ? record->cpu_used : record->live.newest.cpu_ns;
}
